/* Integer kernels without a C library, for measuring the bare engine. Each k_* function returns a check value. */
typedef unsigned long u64;
typedef unsigned u32;
typedef unsigned char u8;

static u32 seed = 12345;
static u32 next_random(void) { seed = seed * 1103515245 + 12345; return seed >> 8; }

static int numbers[400000];
static void quicksort(int *a, int low, int high) {
    while (low < high) {
        int pivot = a[(low + high) / 2], i = low, j = high;
        while (i <= j) {
            while (a[i] < pivot) i++;
            while (a[j] > pivot) j--;
            if (i <= j) { int t = a[i]; a[i] = a[j]; a[j] = t; i++; j--; }
        }
        if (j - low < high - i) { quicksort(a, low, j); low = i; } else { quicksort(a, i, high); high = j; }
    }
}
u64 k_qsort(void) {
    for (int i = 0; i < 200000; i++) numbers[i] = next_random();
    quicksort(numbers, 0, 199999);
    return numbers[100];
}

static u32 table[256];
static u8 bytes[1 << 20];
u64 k_crc(void) {
    for (u32 i = 0; i < 256; i++) {
        u32 c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >> 1) : c >> 1;
        table[i] = c;
    }
    u32 c = ~0u;
    for (int round = 0; round < 8; round++)
        for (int i = 0; i < 1 << 20; i++) c = table[(c ^ bytes[i]) & 255] ^ (c >> 8);
    return c;
}

__attribute__((noinline)) static u64 fibonacci(u64 n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
u64 k_fib(void) { return fibonacci(30); }

static u8 sieve[2000000];
u64 k_sieve(void) {
    u64 count = 0;
    for (int i = 2; i < 2000000; i++) sieve[i] = 1;
    for (int i = 2; i < 2000000; i++)
        if (sieve[i]) { count++; for (u64 j = (u64)i * 2; j < 2000000; j += i) sieve[j] = 0; }
    return count;
}

static long a[128][128], b[128][128], c[128][128];
u64 k_mat(void) {
    for (int i = 0; i < 128; i++) for (int j = 0; j < 128; j++) { a[i][j] = i + j; b[i][j] = i - j; }
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < 128; i++)
            for (int j = 0; j < 128; j++) {
                long sum = 0;
                for (int k = 0; k < 128; k++) sum += a[i][k] * b[k][j];
                c[i][j] += sum;
            }
    return c[5][7];
}

static u64 slots[1 << 18];
u64 k_hash(void) {
    u64 x = 88172645463325252ull, sum = 0;
    for (int i = 0; i < 1000000; i++) {
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        u64 key = x % 100000 + 1;
        u64 h = (key * 0x9E3779B97F4A7C15ull) >> 46;
        while (slots[h] && slots[h] != key) h = (h + 1) & ((1 << 18) - 1);
        slots[h] = key;
        sum += h;
    }
    return sum;
}

static u64 f1(u64 x) { return x * 3 + 1; }
static u64 f2(u64 x) { return x ^ 0x55; }
static u64 f3(u64 x) { return x >> 1; }
static u64 f4(u64 x) { return x + 7; }
static u64 (*volatile functions[4])(u64) = {f1, f2, f3, f4};
u64 k_icall(void) {
    u64 x = 1;
    for (int i = 0; i < 5000000; i++) x = functions[(x ^ i) & 3](x);
    return x;
}

static volatile u64 word;
u64 k_lock(void) {
    for (int i = 0; i < 1000000; i++) {
        __atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
        u64 expected = word;
        __atomic_compare_exchange_n(&word, &expected, expected + 1, 0, 5, 5);
    }
    return word;
}

void _start(void) {}
