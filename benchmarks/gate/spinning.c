/* Adds up WORK times: the program of the gate's benchmark. */
int main(void)
{
    volatile unsigned long sum = 0;
    for (unsigned long step = 0; step < WORK; step++)
        sum += step;
    return 0;
}
