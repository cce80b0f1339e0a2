# truth: none
# about: two processes count primes, each its own half, and the parent adds up what they found
import multiprocessing


def primes(span):
    found = 0
    for n in range(*span):
        found += n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))
    return found


def main():
    bounds = [0, 70_000, 140_000, 210_000, 280_000]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(sum(pool.map(primes, list(zip(bounds, bounds[1:])), chunksize=1)))


if __name__ == "__main__":
    main()
