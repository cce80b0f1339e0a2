/* blas.c: see blas.h. Our own small declarations: no header is needed to build. */
#include "model/ref/blas.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

typedef void gemm_function(int order, int ta, int tb, int m, int n, int k, float alpha,
                           const float *a, int lda, const float *b, int ldb, float beta,
                           float *c, int ldc);
typedef void eigen_function(const char *job, const char *part, const int *n, float *a,
                            const int *lda, float *w, float *work, const int *lwork,
                            int *iwork, const int *liwork, int *info);

static struct {
    gemm_function *gemm;
    eigen_function *eigen;
    void (*set_threads)(int);
    int (*get_threads)(void);
    char name[128];
} blas = { .name = "plain C" };

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ISO C has no cast from dlsym()'s pointer to one of a function. */
static void find(void *library, const char *name, void *ret_function)
{
    void *symbol = dlsym(library, name);
    memcpy(ret_function, &symbol, sizeof symbol);
}

/* "OpenBLAS 0.3.21, Cooperlake": version and the kernels it chose for this processor. */
static void name_library(void *library)
{
    char *(*configuration)(void) = NULL, *(*core)(void) = NULL;
    find(library, "openblas_get_config", &configuration);
    find(library, "openblas_get_corename", &core);
    if (!configuration || !core)
        return;
    const char *text = configuration();
    const char *version = strchr(text, ' ');
    (void)snprintf(blas.name, sizeof blas.name, "OpenBLAS %.*s, %s",
                   version ? (int)strcspn(version + 1, " ") : 0,
                   version ? version + 1 : "", core());
}

static void load(void)
{
    static const char *const libraries[] = { "libopenblas.so.0", "libopenblas.so",
                                             "libblas.so.3", "libcblas.so.3" };
    void *library = NULL;
    if (getenv("SONDE_NO_BLAS"))
        return;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries && !blas.gemm; i++) {
        library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
        if (!library)
            continue;
        find(library, "cblas_sgemm", &blas.gemm);
        (void)snprintf(blas.name, sizeof blas.name, "%s", libraries[i]);
        if (!blas.gemm)
            (void)dlclose(library);
    }
    if (!blas.gemm) {
        (void)snprintf(blas.name, sizeof blas.name, "plain C");
        return;
    }
    find(library, "ssyevd_", &blas.eigen);
    find(library, "openblas_set_num_threads", &blas.set_threads);
    find(library, "openblas_get_num_threads", &blas.get_threads);
    name_library(library);
}

/* ---- Without a library --------------------------------------------------------------- */

static float at(struct mat x, size_t row, size_t column)
{
    return x.t ? x.data[column * x.stride + row] : x.data[row * x.stride + column];
}

/* Row by row of C, so that the inner loop runs along rows of B where it can. */
static void plain(size_t m, size_t n, size_t k, float alpha, struct mat a, struct mat b,
                  float beta, float *c, size_t stride)
{
    for (size_t i = 0; i < m; i++) {
        float *row = c + i * stride;
        for (size_t j = 0; j < n; j++)
            row[j] = beta == 0 ? 0 : beta * row[j];
        for (size_t p = 0; p < k; p++) {
            const float left = alpha * at(a, i, p);
            for (size_t j = 0; j < n; j++)
                row[j] += left * at(b, p, j);
        }
    }
}

/* ---- What others call ----------------------------------------------------------------- */

void blas_multiply(size_t m, size_t n, size_t k, float alpha, struct mat a,
                   struct mat b, float beta, float *c, size_t stride)
{
    (void)pthread_once(&once, load);
    if (m == 0 || n == 0)
        return;
    if (blas.gemm)
        blas.gemm(ROW_MAJOR, a.t ? TRANS : NO_TRANS, b.t ? TRANS : NO_TRANS, (int)m,
                  (int)n, (int)k, alpha, a.data, (int)a.stride, b.data, (int)b.stride,
                  beta, c, (int)stride);
    else
        plain(m, n, k, alpha, a, b, beta, c, stride);
}

int blas_eigen(float *matrix, size_t n, float *ret_values)
{
    (void)pthread_once(&once, load);
    if (!blas.eigen)
        return SONDE_E_UNSUPPORTED;
    const int size = (int)n, lwork = 1 + 6 * size + 2 * size * size,
              liwork = 3 + 5 * size;
    float *work = malloc((size_t)lwork * sizeof *work);
    int *iwork = malloc((size_t)liwork * sizeof *iwork);
    int info = 0, rc = work && iwork ? 0 : -ENOMEM;
    if (rc == 0) {
        /* Symmetric: Fortran's columns are our rows. */
        blas.eigen("V", "U", &size, matrix, &size, ret_values, work, &lwork, iwork,
                   &liwork, &info);
        rc = info == 0 ? 0 : SONDE_E_STATE;
    }
    free(work);
    free(iwork);
    return rc;
}

const char *blas_name(void)
{
    (void)pthread_once(&once, load);
    return blas.name;
}

bool blas_is_plain(void)
{
    (void)pthread_once(&once, load);
    return !blas.gemm;
}

int blas_threads(int threads)
{
    (void)pthread_once(&once, load);
    if (threads > 0 && blas.set_threads)
        blas.set_threads(threads);
    return blas.get_threads ? blas.get_threads() : 1;
}
