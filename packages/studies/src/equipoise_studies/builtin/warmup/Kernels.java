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
        for (double[] one : b) {
            for (int axis = 0; axis < 3; axis++) {
                one[axis] += 0.01 * one[3 + axis];
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
        int[] turned = order.clone();
        int flips = 0;
        while (turned[0] != 0) {
            for (int low = 0, high = turned[0]; low < high; low++, high--) {
                int kept = turned[low];
                turned[low] = turned[high];
                turned[high] = kept;
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
        int most = 0;
        int total = 0;
        int place = LENGTH;
        for (int number = 0; ; number++) {
            for (; place != 1; place--) {
                count[place - 1] = place;
            }
            int flips = flipsOf(order);
            most = Math.max(most, flips);
            total += number % 2 != 0 ? -flips : flips;
            while (true) {
                if (place == LENGTH) {
                    return 1000.0 * total + most;
                }
                int first = order[0];
                System.arraycopy(order, 1, order, 0, place);
                order[place] = first;
                if (--count[place] > 0) {
                    break;
                }
                place++;
            }
        }
    }

    private static double cell(int i, int j) {
        return 1.0 / ((i + j) * (i + j + 1) / 2 + i + 1);
    }

    private static double[] both(double[] vector) {
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
        double[] one = new double[ORDER];
        double[] other = one;
        java.util.Arrays.fill(one, 1.0);
        for (int round = 0; round < 10; round++) {
            other = both(one);
            one = both(other);
        }
        double above = 0.0;
        double below = 0.0;
        for (int i = 0; i < ORDER; i++) {
            above += one[i] * other[i];
            below += other[i] * other[i];
        }
        return Math.sqrt(above / below);
    }

    private static DoubleSupplier named(String name) {
        return switch (name) {
            case "nbody" -> Kernels::nbody;
            case "fannkuch" -> Kernels::fannkuch;
            case "spectral" -> Kernels::spectral;
            default -> throw new IllegalArgumentException("no kernel " + name);
        };
    }

    /** Receives the answers, so that the compiler cannot omit a call. */
    private static volatile double sink;

    public static void main(String[] words) {
        DoubleSupplier kernel = named(words[0]);
        double[] seconds = new double[Integer.parseInt(words[1])];
        int repeat = Integer.parseInt(words[2]);
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
