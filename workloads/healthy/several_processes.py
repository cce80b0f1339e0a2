# truth: none
# about: two processes count primes, each its own half, and the parent adds up what they found
import multiprocessing


def primes(span):
    found = 0
    for n in range(*span):
        found += n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))
    return found


def main():
    spans = [(n, n + 70_000) for n in range(0, 280_000, 70_000)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(sum(pool.map(primes, spans, chunksize=1)))


if __name__ == "__main__":
    main()
