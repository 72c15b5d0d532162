pragma circom 2.2.0;

// The bits of a value.
template Bits(COUNT) {
    signal input value;
    signal output bits[COUNT];

    var sum = 0;
    for (var i = 0; i < COUNT; i++) {
        bits[i] <-- (value >> i) & 1;
        bits[i] * (bits[i] - 1) === 0;
        sum += bits[i] * 2 ** i;
    }
    value === sum;
}

component main { public [value] } = Bits(8);
