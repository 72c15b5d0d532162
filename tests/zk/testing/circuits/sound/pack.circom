pragma circom 2.2.0;

include "../below.circom";

// Two octal digits as one number.
template Pack() {
    signal input low;
    signal input high;
    signal output packed;

    Below(8)(low);
    Below(8)(high);
    packed <== low + 8 * high;
}

component main = Pack();
