finding 1 of 1: assertion failed: condition_if: condition_if.c:16: consumer: Assertion `items >= 0' failed.

  (1) thread 2 begins to wait for `filled`      condition_if.c:13  consumer  no locks
  (2) thread 3 locks `lock`                     condition_if.c:11  consumer  holds `lock`
  (3) thread 3 reads `items` = 0                condition_if.c:12  consumer  holds `lock`
  (4) thread 3 unlocks `lock`                   condition_if.c:13  consumer  no locks
  (5) thread 3 begins to wait for `filled`      condition_if.c:13  consumer  no locks
  (6) thread 4 locks `lock`                     condition_if.c:24  producer  holds `lock`
  (7) thread 4 reads `items` = 0                condition_if.c:25  producer  holds `lock`
  (8) thread 4 writes `items` = 1               condition_if.c:25  producer  holds `lock`
  (9) thread 4 wakes all who wait for `filled`  condition_if.c:26  producer  holds `lock`
  (10) thread 4 unlocks `lock`                  condition_if.c:27  producer  no locks
  (11) thread 2 has waited for `filled`         condition_if.c:13  consumer  no locks
  (12) thread 2 locks `lock`                    condition_if.c:13  consumer  holds `lock`
  (13) thread 2 writes `items` = 0              condition_if.c:15  consumer  holds `lock`
  (14) thread 2 reads `items` = 0               condition_if.c:16  consumer  holds `lock`
  (15) thread 2 unlocks `lock`                  condition_if.c:17  consumer  no locks
  (16) thread 3 has waited for `filled`         condition_if.c:13  consumer  no locks
  (17) thread 3 locks `lock`                    condition_if.c:13  consumer  holds `lock`
  (18) thread 3 reads `items` = 0               condition_if.c:15  consumer  holds `lock`
  (19) thread 3 writes `items` = -1             condition_if.c:15  consumer  holds `lock`
  (20) thread 3 reads `items` = -1              condition_if.c:16  consumer  holds `lock`
  (21) thread 3 gives up                        condition_if.c:16  consumer  holds `lock`
      in this order thread 3 gives up at condition_if.c:16 consumer

  condition_if.c
   11 │     pthread_mutex_lock(&lock);  ◀ (2)
   12 │     if (items == 0) {  ◀ (3)
   13 │         pthread_cond_wait(&filled, &lock);  ◀ (1) (4) (5) (11) (12) (16) (17)
   15 │     items--;  ◀ (13) (18) (19)
   16 │     assert(items >= 0);  ◀ (14) (20) (21)
   17 │     pthread_mutex_unlock(&lock);  ◀ (15)
   24 │         pthread_mutex_lock(&lock);  ◀ (6)
   25 │         items++;  ◀ (7) (8)
   26 │         pthread_cond_broadcast(&filled);  ◀ (9)
   27 │         pthread_mutex_unlock(&lock);  ◀ (10)

  4 more steps are left out; `--json` has all
  thread 2 was created at condition_if.c:34 main
  thread 3 was created at condition_if.c:35 main
  thread 4 was created at condition_if.c:36 main
  confirmed (error), object `items`

