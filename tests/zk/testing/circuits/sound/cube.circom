pragma circom 2.2.0;

// The third power of a value.
template Cube() {
    signal input value;
    signal output cube;

    signal square <== value * value;
    cube <== square * value;
}

component main { public [value] } = Cube();
