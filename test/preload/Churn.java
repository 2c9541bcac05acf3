// SPDX-License-Identifier: Apache-2.0
//
// Work for java whose output is the same every time; compiled and run by java.sh. What it needs of malloc lies outside
// of Java's own heap: the compiler that runs beside it, direct buffers, compression, threads, classes.
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
import java.util.zip.*;

public class Churn {
  static final class Numbers {
    private long state;
    Numbers(long seed) { state = seed; }
    int next(int n) {
      state = (state * 6364136223846793005L + 1442695040888963407L);
      return (int) ((state >>> 33) % n);
    }
  }

  static long crc(byte[] data) {
    CRC32 crc = new CRC32();
    crc.update(data);
    return crc.getValue();
  }

  static long direct(int seed) {
    Numbers numbers = new Numbers(seed);
    ByteBuffer[] live = new ByteBuffer[40];
    long sum = 0;
    for (int step = 0; step < 1000; ++step) {
      ByteBuffer buffer = ByteBuffer.allocateDirect(1 + numbers.next(60000));
      buffer.putInt(0, step % 100 == 0 ? 1 : buffer.capacity() > 3 ? step : 0);
      int at = numbers.next(live.length);
      if (live[at] != null) sum += live[at].capacity() * 31L + live[at].get(0);
      live[at] = buffer;
    }
    return sum;
  }

  static long packed(int seed) {
    Numbers numbers = new Numbers(seed);
    long sum = 0;
    for (int round = 0; round < 60; ++round) {
      StringBuilder text = new StringBuilder();
      for (int i = 0; i < 2000; ++i) text.append("word").append(numbers.next(500)).append(' ');
      byte[] data = text.toString().getBytes(StandardCharsets.UTF_8);
      byte[] out = new byte[data.length + 100];
      Deflater deflater = new Deflater(1 + round % 9);
      deflater.setInput(data);
      deflater.finish();
      int length = deflater.deflate(out);
      deflater.end();
      Inflater inflater = new Inflater();
      inflater.setInput(out, 0, length);
      byte[] back = new byte[data.length];
      try {
        if (inflater.inflate(back) != data.length || !Arrays.equals(back, data)) throw new AssertionError();
      } catch (DataFormatException error) {
        throw new AssertionError(error);
      }
      inflater.end();
      sum += crc(data);
    }
    return sum;
  }

  static long objects(int seed) {
    Numbers numbers = new Numbers(seed);
    Map<Integer, List<String>> live = new HashMap<>();
    for (int step = 0; step < 100000; ++step) {
      int key = numbers.next(3000);
      if (numbers.next(3) == 0) live.remove(key);
      else live.computeIfAbsent(key, k -> new ArrayList<>()).add("value" + numbers.next(1000));
    }
    return live.values().stream().mapToLong(list -> list.stream().mapToLong(String::hashCode).sum()).sum();
  }

  public static void main(String[] words) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(6);
    List<Future<Long>> results = new ArrayList<>();
    for (int i = 0; i < 6; ++i) {
      final int seed = i;
      results.add(pool.submit(() -> direct(seed)));
      results.add(pool.submit(() -> packed(seed)));
      results.add(pool.submit(() -> objects(seed)));
    }
    for (Future<Long> result : results) System.out.println(result.get());
    pool.shutdown();

    List<Thread> threads = new ArrayList<>();
    LongAdder adder = new LongAdder();
    for (int i = 0; i < 200; ++i) {
      Thread thread = new Thread(() -> adder.add(direct(7) & 1023));
      thread.start();
      threads.add(thread);
      if (threads.size() == 20) {
        for (Thread one : threads) one.join();
        threads.clear();
      }
    }
    System.out.println(adder.sum());
    System.out.println(IntStream.range(0, 100000).parallel().mapToObj(Integer::toString)
        .filter(s -> s.matches("(\\d)\\d*\\1")).mapToInt(String::length).sum());
  }

  static final class LongAdder extends java.util.concurrent.atomic.LongAdder {}
}
