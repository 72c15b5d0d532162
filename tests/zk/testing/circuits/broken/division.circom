pragma circom 2.2.0;

include "../below.circom";

// An assert used as a constraint: a remainder of 10 and more is accepted.
template Division() {
    signal input value;
    signal output quotient;
    signal output remainder;

    quotient <-- value \ 10;
    remainder <-- value % 10;
    value === 10 * quotient + remainder;
    Below(16)(quotient);
    assert(remainder < 10);
}

component main { public [value] } = Division();
