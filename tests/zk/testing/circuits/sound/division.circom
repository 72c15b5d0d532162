pragma circom 2.2.0;

include "../below.circom";

// Division of a value below 160 by 10.
template Division() {
    signal input value;
    signal output quotient;
    signal output remainder;

    quotient <-- value \ 10;
    remainder <-- value % 10;
    value === 10 * quotient + remainder;
    Below(16)(quotient);
    Below(10)(remainder);
}

component main { public [value] } = Division();
