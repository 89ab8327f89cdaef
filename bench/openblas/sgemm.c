/*
 * Times OpenBLAS's SGEMM on the shapes of a file: one JSON object a line.
 *
 *   gcc -O2 -o bin/sgemm_openblas bench/openblas/sgemm.c -lopenblas
 *   bin/sgemm_openblas bench/shapes.txt THREADS
 *
 * A program of its own: the trainer never links OpenBLAS.
 */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES = 5 };

static const double SAMPLE_SECONDS = 0.02; /* long against the clock's and the scheduler's grain */

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *filled(size_t n) {
	float *x = aligned_alloc(64, (n * sizeof *x + 63) / 64 * 64);
	if (!x) {
		fprintf(stderr, "sgemm_openblas: no memory for %zu floats\n", n);
		exit(1);
	}
	for (size_t i = 0; i < n; i++)
		x[i] = (float)(i * 2654435761u % 1000) / 1000 - 0.5f;
	return x;
}

/* stride is how far apart the trainer lays rows of n activations: as far as not to
 * fall into one set of the cache (kernel.Stride). Weights lie dense. */
static int stride(int n) {
	return n % 512 ? n : n + 16;
}

static int ascending(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv) {
	if (argc != 3) {
		fprintf(stderr, "usage: sgemm_openblas SHAPES THREADS\n");
		return 2;
	}
	FILE *shapes = fopen(argv[1], "r");
	if (!shapes) {
		perror(argv[1]);
		return 1;
	}
	int threads = atoi(argv[2]);
	openblas_set_num_threads(threads);

	char line[256], name[64], form[3];
	int m, n, k;
	while (fgets(line, sizeof line, shapes)) {
		if (sscanf(line, "%63s %2s %d %d %d", name, form, &m, &n, &k) != 5 || name[0] == '#')
			continue;
		int ta = form[0] == 'T', tb = form[1] == 'T';
		int lda = stride(ta ? m : k), ldb = ta ? stride(n) : tb ? k : n, ldc = ta ? n : stride(n);
		float *a = filled((size_t)lda * (ta ? k : m)), *b = filled((size_t)ldb * (tb ? n : k)), *c = filled((size_t)ldc * m);
		double seconds[SAMPLES];
		int calls = 1;
		for (int s = -1; s < SAMPLES;) { /* sample -1 warms up and finds the number of calls */
			double start = now();
			for (int i = 0; i < calls; i++)
				cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
				            m, n, k, 1, a, lda, b, ldb, 0, c, ldc);
			double took = now() - start;
			if (s < 0 && took < SAMPLE_SECONDS) {
				calls *= 2;
				continue;
			}
			if (s >= 0)
				seconds[s] = took / calls;
			s++;
		}
		qsort(seconds, SAMPLES, sizeof seconds[0], ascending);
		double flop = 2.0 * m * n * k;
		printf("{\"contender\":\"openblas\",\"version\":\"%s %s\",\"shape\":\"%s\",\"form\":\"%s\","
		       "\"m\":%d,\"n\":%d,\"k\":%d,\"threads\":%d,\"gflops_best\":%.1f,\"gflops_median\":%.1f}\n",
		       openblas_get_config(), openblas_get_corename(), name, form, m, n, k, threads,
		       flop / seconds[0] / 1e9, flop / seconds[SAMPLES / 2] / 1e9);
		fflush(stdout);
		free(a);
		free(b);
		free(c);
	}
	fclose(shapes);
	return 0;
}
