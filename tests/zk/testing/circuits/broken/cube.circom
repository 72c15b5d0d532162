pragma circom 2.2.0;

// An assignment without a constraint: the output can be anything.
template Cube() {
    signal input value;
    signal output cube;

    signal square <== value * value;
    cube <-- square * value;
}

component main { public [value] } = Cube();
