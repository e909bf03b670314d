finding 1 of 1: exit status 4 instead of 0

  (1) thread 2 sends 1 byte to `pipe:[4099]` (`write`)         fork_pipe.c:13  main  no locks
  (2) thread 1 (main) sends 1 byte to `pipe:[4099]` (`write`)  fork_pipe.c:15  main  no locks
  (3) thread 1 (main) receives 2 bytes from `pipe:[4099]` (`read`)  fork_pipe.c:20  main  no locks
      in this order the program ends with status 4; without interruptions it ends with 0

  fork_pipe.c
   13 │         _exit(write(ends[1], "c", 1) != 1);  ◀ (1)
   15 │     if (write(ends[1], "p", 1) != 1) {  ◀ (2)
   20 │         ssize_t count = read(ends[0], text + got, 2 - got);  ◀ (3)

  thread 2 was created at fork_pipe.c:11 main
  confirmed (error)

