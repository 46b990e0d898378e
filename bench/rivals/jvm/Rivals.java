import io.github.resilience4j.ratelimiter.RateLimiterConfig;
import java.time.Duration;
import java.util.function.BooleanSupplier;

/** Measures Guava and resilience4j; see the Go program beside it. */
final class Rivals {
  static void measure(String name, BooleanSupplier take) {
    int calls = 1 << 20, windows = 20;
    long admitted = 0;
    double least = Double.MAX_VALUE;
    for (int w = 0; w < windows; w++) { // the first ones are compiled while they run
      long began = System.nanoTime();
      for (int i = 0; i < calls; i++) {
        if (take.getAsBoolean()) {
          admitted++;
        }
      }
      least = Math.min(least, (double) (System.nanoTime() - began) / calls);
    }
    System.out.printf("%s\t%.1f\t%d\t%d%n", name, least, admitted, (long) windows * calls);
  }

  public static void main(String[] args) {
    var bursty = com.google.common.util.concurrent.RateLimiter.create(1e9);
    measure("Guava, bursty", () -> bursty.tryAcquire());
    var warm = com.google.common.util.concurrent.RateLimiter.create(1e9, Duration.ofMillis(1));
    measure("Guava, with a warm-up", () -> warm.tryAcquire());
    var cycle = io.github.resilience4j.ratelimiter.RateLimiter.of("cycle",
        RateLimiterConfig.custom().limitForPeriod(1_000_000_000).limitRefreshPeriod(Duration.ofHours(1)).timeoutDuration(Duration.ZERO).build());
    measure("resilience4j, acquirePermission", () -> cycle.acquirePermission());
  }
}
