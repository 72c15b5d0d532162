pragma circom 2.2.0;

include "../below.circom";

// A packing that is not injective: 8 + 8 * 0 is 0 + 8 * 1.
template Pack() {
    signal input low;
    signal input high;
    signal output packed;

    Below(8)(high);
    packed <== low + 8 * high;
}

component main = Pack();
