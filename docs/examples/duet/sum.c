/* The program of the example; WORK is how much it does. */
int main(void) {
    volatile long sum = 0;
    for (long index = 0; index < WORK; index++) sum += index;
    return 0;
}
