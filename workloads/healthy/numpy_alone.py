# truth: none
# about: numpy without steps or a framework: power iterations on a matrix in float32
# needs: numpy openblas
import numpy as np


def main():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((1200, 1200), dtype=np.float32)
    a = a @ a.T / 1200
    block = rng.standard_normal((1200, 64), dtype=np.float32)
    product = np.empty_like(block)
    for _ in range(1500):
        np.matmul(a, block, out=product)
        block = product / np.linalg.norm(product, axis=0)  # qr() would compute in float64
    print(float(np.abs(block).max()))


if __name__ == "__main__":
    main()
