import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Reports a program's own metrics to Equipoise. One file, the standard library alone: copy it.
 *
 * <p>Outside of Equipoise, where EQUIPOISE_METRICS is not set, reports go nowhere.
 */
public final class EquipoiseMetrics {
    private EquipoiseMetrics() {}

    /** A metric of the trial, of which less is better. The name is a plain word. */
    public static void report(String metric, double value) {
        append("{\"metric\": \"" + metric + "\", \"value\": " + value + "}\n");
    }

    /** As above, with the smallest step that the value can make, in its unit, above 0. */
    public static void report(String metric, double value, double resolution) {
        append(
                "{\"metric\": \"" + metric + "\", \"value\": " + value
                        + ", \"resolution\": " + resolution + "}\n");
    }

    /** The values of iterations, in order, and their mean as the metric of the trial. */
    public static void reportIterations(String metric, double[] values) {
        reportIterations(metric, values, 0.0);
    }

    /**
     * As above, with the smallest step that a value can make, in its unit; 0 if unknown. Seconds
     * from System.nanoTime have steps of 1e-9.
     */
    public static void reportIterations(String metric, double[] values, double resolution) {
        StringBuilder lines = new StringBuilder();
        double sum = 0.0;
        for (int i = 0; i < values.length; i++) {
            sum += values[i];
            lines.append("{\"metric\": \"").append(metric).append("\", \"value\": ");
            lines.append(values[i]).append(", \"iteration\": ").append(i + 1);
            if (resolution > 0) {
                lines.append(", \"resolution\": ").append(resolution);
            }
            lines.append("}\n");
        }
        append(lines.toString());
        if (values.length == 0) {
            return;
        }
        if (resolution > 0) {
            report(metric, sum / values.length, resolution / values.length);
        } else {
            report(metric, sum / values.length);
        }
    }

    private static void append(String lines) {
        String path = System.getenv("EQUIPOISE_METRICS");
        if (path == null || path.isEmpty()) {
            return;
        }
        try {
            Files.writeString(
                    Path.of(path), lines, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
