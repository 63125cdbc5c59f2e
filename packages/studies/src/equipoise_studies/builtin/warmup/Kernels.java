import java.util.function.DoubleSupplier;

/**
 * Three classic kernels for the JVM: {@code Kernels KERNEL ITERATIONS REPEAT}.
 *
 * <p>Each iteration runs the kernel REPEAT times. The kernels are written for this study, in the
 * same way in every language of this folder.
 */
public final class Kernels {
    private static final int STEPS = 500;
    private static final int LENGTH = 7;
    private static final int ORDER = 30;
    private static final double DAYS = 365.24;
    private static final double MASS = 4 * Math.PI * Math.PI;
    private static final double[][] START = {
        {0, 0, 0, 0, 0, 0, 1},
        {4.8414314424647209, -1.16032004402742839, -0.103622044471123109, 0.00166007664274403694,
            0.00769901118419740425, -0.0000690460016972063023, 0.000954791938424326609},
        {8.34336671824457987, 4.12479856412430479, -0.403523417114321381, -0.00276742510726411021,
            0.00499852801234917238, 0.0000230417297573763929, 0.000285885980666130812},
        {12.8943695621391310, -15.1111514016986312, -0.223307578892655734, 0.00296460137564761618,
            0.00237847173959480950, -0.0000296589568540237556, 0.0000436624404335156298},
        {15.3796971148509165, -25.9193146099879641, 0.179258772950371181, 0.00268067772490389322,
            0.00162824170038242295, -0.0000951592254519715870, 0.0000515138902046611451},
    };

    private Kernels() {}

    private static void advance(double[][] b) {
        for (int i = 0; i < b.length; i++) {
            for (int j = i + 1; j < b.length; j++) {
                double dx = b[i][0] - b[j][0];
                double dy = b[i][1] - b[j][1];
                double dz = b[i][2] - b[j][2];
                double squared = dx * dx + dy * dy + dz * dz;
                double pull = 0.01 / (squared * Math.sqrt(squared));
                b[i][3] -= dx * b[j][6] * pull;
                b[i][4] -= dy * b[j][6] * pull;
                b[i][5] -= dz * b[j][6] * pull;
                b[j][3] += dx * b[i][6] * pull;
                b[j][4] += dy * b[i][6] * pull;
                b[j][5] += dz * b[i][6] * pull;
            }
        }
        for (double[] body : b) {
            for (int axis = 0; axis < 3; axis++) {
                body[axis] += 0.01 * body[3 + axis];
            }
        }
    }

    private static double nbody() {
        double[][] b = new double[START.length][];
        for (int i = 0; i < b.length; i++) {
            b[i] = START[i].clone();
            b[i][6] *= MASS;
            for (int axis = 3; axis < 6; axis++) {
                b[i][axis] *= DAYS;
            }
        }
        for (int axis = 3; axis < 6; axis++) {
            for (int i = 1; i < b.length; i++) {
                b[0][axis] -= b[i][axis] * b[i][6] / MASS;
            }
        }
        for (int step = 0; step < STEPS; step++) {
            advance(b);
        }
        double energy = 0.0;
        for (int i = 0; i < b.length; i++) {
            energy += 0.5 * b[i][6]
                    * (b[i][3] * b[i][3] + b[i][4] * b[i][4] + b[i][5] * b[i][5]);
            for (int j = i + 1; j < b.length; j++) {
                double x = b[i][0] - b[j][0];
                double y = b[i][1] - b[j][1];
                double z = b[i][2] - b[j][2];
                energy -= b[i][6] * b[j][6] / Math.sqrt(x * x + y * y + z * z);
            }
        }
        return energy;
    }

    private static int flipsOf(int[] order) {
        int[] flipped = order.clone();
        int flips = 0;
        while (flipped[0] != 0) {
            for (int low = 0, high = flipped[0]; low < high; low++, high--) {
                int swapped = flipped[low];
                flipped[low] = flipped[high];
                flipped[high] = swapped;
            }
            flips++;
        }
        return flips;
    }

    private static double fannkuch() {
        int[] order = new int[LENGTH];
        int[] count = new int[LENGTH];
        for (int i = 0; i < LENGTH; i++) {
            order[i] = i;
        }
        int maxFlips = 0;
        int total = 0;
        int position = LENGTH;
        for (int number = 0; ; number++) {
            for (; position != 1; position--) {
                count[position - 1] = position;
            }
            int flips = flipsOf(order);
            maxFlips = Math.max(maxFlips, flips);
            total += number % 2 != 0 ? -flips : flips;
            while (true) {
                if (position == LENGTH) {
                    return 1000.0 * total + maxFlips;
                }
                int first = order[0];
                System.arraycopy(order, 1, order, 0, position);
                order[position] = first;
                if (--count[position] > 0) {
                    break;
                }
                position++;
            }
        }
    }

    private static double cell(int i, int j) {
        return 1.0 / ((i + j) * (i + j + 1) / 2 + i + 1);
    }

    private static double[] multiply(double[] vector) {
        double[] forward = new double[ORDER];
        double[] result = new double[ORDER];
        for (int i = 0; i < ORDER; i++) {
            for (int j = 0; j < ORDER; j++) {
                forward[i] += cell(i, j) * vector[j];
            }
        }
        for (int i = 0; i < ORDER; i++) {
            for (int j = 0; j < ORDER; j++) {
                result[i] += cell(j, i) * forward[j];
            }
        }
        return result;
    }

    private static double spectral() {
        double[] vector = new double[ORDER];
        double[] product = vector;
        java.util.Arrays.fill(vector, 1.0);
        for (int round = 0; round < 10; round++) {
            product = multiply(vector);
            vector = multiply(product);
        }
        double numerator = 0.0;
        double denominator = 0.0;
        for (int i = 0; i < ORDER; i++) {
            numerator += vector[i] * product[i];
            denominator += product[i] * product[i];
        }
        return Math.sqrt(numerator / denominator);
    }

    private static DoubleSupplier kernelNamed(String name) {
        return switch (name) {
            case "nbody" -> Kernels::nbody;
            case "fannkuch" -> Kernels::fannkuch;
            case "spectral" -> Kernels::spectral;
            default -> throw new IllegalArgumentException("there is no kernel " + name);
        };
    }

    /** Receives the answers, so that the compiler cannot omit a call. */
    private static volatile double sink;

    public static void main(String[] arguments) {
        DoubleSupplier kernel = kernelNamed(arguments[0]);
        double[] seconds = new double[Integer.parseInt(arguments[1])];
        int repeat = Integer.parseInt(arguments[2]);
        for (int i = 0; i < seconds.length; i++) {
            long started = System.nanoTime();
            for (int j = 0; j < repeat; j++) {
                sink = kernel.getAsDouble();
            }
            seconds[i] = 1e-9 * (System.nanoTime() - started);
        }
        EquipoiseMetrics.report("answer", sink);
        EquipoiseMetrics.reportIterations("iteration_s", seconds, 1e-9);
    }
}
