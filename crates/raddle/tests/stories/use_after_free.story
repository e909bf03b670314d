finding 1 of 2: use after free: thread 2 reads freed memory at use_after_free.c:16 reader

  (1) thread 2 reads `head` = 0x..       use_after_free.c:15  reader  no locks
  (2) thread 3 reads `head` = 0x..       use_after_free.c:25  writer  no locks
  (3) thread 3 writes `head` = 0x..      use_after_free.c:26  writer  no locks
  (4) thread 3 frees `block(use_after_free.c:32)`  use_after_free.c:27  writer  no locks
  (5) thread 2 reads freed memory, 8 bytes from the start of the block  use_after_free.c:16  reader  no locks
      in this order thread 3 frees this block of 16 bytes before thread 2 is done with it

  use_after_free.c
   15 │     struct node *it = head;  ◀ (1)
   16 │     seen = it->value;  ◀ (5)
   25 │     struct node *old = head;  ◀ (2)
   26 │     head = fresh;  ◀ (3)
   27 │     free(old);  ◀ (4)

  thread 2 was created at use_after_free.c:36 main
  thread 3 was created at use_after_free.c:37 main
  confirmed (error), object `head`

finding 2 of 2: data race on `head` between use_after_free.c:15 reader and use_after_free.c:26 writer

  (1) thread 2 reads `head`   use_after_free.c:15  reader  no locks
  (2) thread 3 writes `head`  use_after_free.c:26  writer  no locks
      no lock, creation, join or atomic operation orders these two accesses

  use_after_free.c
   15 │     struct node *it = head;  ◀ (1)
   26 │     head = fresh;  ◀ (2)

  confirmed (warning), object `head`

