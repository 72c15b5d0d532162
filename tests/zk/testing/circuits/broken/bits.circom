pragma circom 2.2.0;

// A missing range check: bit 2 can be anything.
template Bits(COUNT) {
    signal input value;
    signal output bits[COUNT];

    var sum = 0;
    for (var i = 0; i < COUNT; i++) {
        bits[i] <-- (value >> i) & 1;
        if (i != 2) { bits[i] * (bits[i] - 1) === 0; }
        sum += bits[i] * 2 ** i;
    }
    value === sum;
}

component main { public [value] } = Bits(8);
