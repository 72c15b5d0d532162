pragma circom 2.2.0;

// value is one of 0 .. COUNT - 1: (value - 0) (value - 1) ... = 0.
template Below(COUNT) {
    signal input value;

    signal products[COUNT];
    products[0] <== value;
    for (var i = 1; i < COUNT; i++) { products[i] <== products[i - 1] * (value - i); }
    products[COUNT - 1] === 0;
}
