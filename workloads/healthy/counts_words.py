# truth: none
# about: no training at all: reads a file and counts its words
import collections
import tempfile


def main():
    with tempfile.NamedTemporaryFile("w+", suffix=".txt") as f:
        for i in range(200_000):
            f.write(f"word{i % 997} and word{i % 89} again\n")
        f.flush()
        counts = collections.Counter()
        for _ in range(8):
            f.seek(0)
            for line in f:
                counts.update(line.split())
    print(counts.most_common(3))


if __name__ == "__main__":
    main()
