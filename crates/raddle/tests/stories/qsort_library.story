finding 1 of 2: assertion failed: qsort_library: qsort_library.c:36: main: Assertion `strcmp(copy, "first") == 0' failed.

  (1) thread 3 writes `keys[0]` = -1                      qsort_library.c:25  changer  no locks
  (2) thread 3 writes `names[0][0]` = 0x..  qsort_library.c:26  changer  no locks
  (3) thread 3 writes `names[0][8]` = 7632997             qsort_library.c:26  changer  no locks
  (4) thread 2 reads `keys[0]` = -1                       qsort_library.c:12  compare  no locks
  (5) thread 2 reads `keys[1]` = 1                        qsort_library.c:12  compare  no locks
  (6) thread 2 reads `keys[1]` = 1                        qsort_library.c:12  compare  no locks
  (7) thread 2 reads `names[0][0]`.. (library call)       qsort_library.c:19  sorter   no locks
  (8) thread 2 writes `copy[0]`.. (library call)          qsort_library.c:19  sorter   no locks
  (9) thread 1 (main) reads `copy[0]`.. (library call)    qsort_library.c:36  main     no locks
  (10) thread 1 (main) gives up                           qsort_library.c:36  main     no locks
      in this order thread 1 (main) gives up at qsort_library.c:36 main

  qsort_library.c
   12 │     return keys[*(const int *)left] - keys[*(const int *)right];  ◀ (4) (5) (6)
   19 │     strcpy(copy, names[0]);  ◀ (7) (8)
   25 │     keys[0] = -1;  ◀ (1)
   26 │     strcpy(names[0], "longer text");  ◀ (2) (3)
   36 │     assert(strcmp(copy, "first") == 0);  ◀ (9) (10)

  1 more step is left out; `--json` has all
  thread 2 was created at qsort_library.c:32 main
  thread 3 was created at qsort_library.c:33 main
  confirmed (error), object `copy[0]`

finding 2 of 2: data race on `names[0][0]` between qsort_library.c:19 sorter and qsort_library.c:26 changer

  (1) thread 2 reads `names[0][0]`   qsort_library.c:19  sorter   no locks
  (2) thread 3 writes `names[0][0]`  qsort_library.c:26  changer  no locks
      no lock, creation, join or atomic operation orders these two accesses

  qsort_library.c
   19 │     strcpy(copy, names[0]);  ◀ (1)
   26 │     strcpy(names[0], "longer text");  ◀ (2)

  confirmed (warning), object `names[0][0]`

