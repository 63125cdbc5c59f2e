import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Reports a program's own metrics to Equipoise. This file needs only the standard library; copy it.
 *
 * <p>Equipoise sets EQUIPOISE_METRICS. Without this variable nothing is reported.
 */
public final class EquipoiseMetrics {
    private EquipoiseMetrics() {}

    /** Reports a metric of the trial, of which less is better. Its name is a plain word. */
    public static void report(String metric, double value) {
        append("{\"metric\": \"" + metric + "\", \"value\": " + value + "}\n");
    }

    /** Reports a metric with its resolution: the smallest step of the value, above 0. */
    public static void report(String metric, double value, double resolution) {
        append(
                "{\"metric\": \"" + metric + "\", \"value\": " + value
                        + ", \"resolution\": " + resolution + "}\n");
    }

    /** Reports the values of iterations, and their mean as the metric of the trial. */
    public static void reportIterations(String metric, double[] values) {
        reportIterations(metric, values, 0.0);
    }

    /** Reports values with their resolution; 0 if unknown, 1e-9 for seconds of System.nanoTime. */
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
