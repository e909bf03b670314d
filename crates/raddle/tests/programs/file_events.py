"""Signals, timers, locks, shared memory, FIFOs and sockets as descriptors; prints what a program sees of them."""
import os,select,signal,socket,struct,fcntl,mmap,tempfile,ctypes,array,time,threading,subprocess,errno
libc=ctypes.CDLL(None,use_errno=True)
d=tempfile.mkdtemp(); os.chdir(d)
# signalfd
signal.pthread_sigmask(signal.SIG_BLOCK,[signal.SIGUSR1,signal.SIGCHLD])
mask=(ctypes.c_uint64*16)(); mask[0]=(1<<(signal.SIGUSR1-1))|(1<<(signal.SIGCHLD-1))
sfd=libc.signalfd(-1,mask,0o4000); 
ep=select.epoll(); ep.register(sfd,select.EPOLLIN)
print("sig0",ep.poll(0))
os.kill(os.getpid(),signal.SIGUSR1)
print("sig1",[e for f,e in ep.poll(1)]); b=os.read(sfd,128); print(struct.unpack_from("I",b)[0], struct.unpack_from("I",b,12)[0]==os.getpid())
pid=os.fork()
if pid==0: os._exit(3)
print([e for f,e in ep.poll(5)]); b=os.read(sfd,128); print(struct.unpack_from("I",b)[0], struct.unpack_from("I",b,12)[0]==pid, struct.unpack_from("i",b,40)[0])
print(os.waitpid(pid,0)[1])
# pidfd
pid=os.fork()
if pid==0: time.sleep(0.05); os._exit(0)
p=os.pidfd_open(pid); po=select.poll(); po.register(p,select.POLLIN); print("pidfd",po.poll(0)); print([e for f,e in po.poll(3000)]); os.waitpid(pid,0); print([e for f,e in po.poll(0)])
# timerfd, eventfd
tfd=libc.timerfd_create(1,0); it=(ctypes.c_long*4)(0,20000000,0,10000000); libc.timerfd_settime(tfd,0,it,None)
print(len(os.read(tfd,8))); time.sleep(0.055); print(struct.unpack("Q",os.read(tfd,8))[0]>=2)
efd=os.eventfd(0); pid=os.fork()
if pid==0: time.sleep(0.02); os.eventfd_write(efd,5); os._exit(0)
print("event",os.eventfd_read(efd)); os.waitpid(pid,0)
# shared mmap over fork, file and anonymous
m=mmap.mmap(-1,8192); f=open("shared","w+b"); f.truncate(4096); fm=mmap.mmap(f.fileno(),4096)
pid=os.fork()
if pid==0: m[0:5]=b"child"; fm[10:13]=b"abc"; os.pwrite(f.fileno(),b"W",100); os._exit(0)
os.waitpid(pid,0); print(m[0:5],os.pread(f.fileno(),3,10),fm[100:101])
# fifo between processes
os.mkfifo("fifo"); pid=os.fork()
if pid==0:
    w=open("fifo","w"); w.write("through fifo"); w.close(); os._exit(0)
print(open("fifo").read()); os.waitpid(pid,0)
# flock and posix locks between processes
lf=open("lock","w"); fcntl.flock(lf,fcntl.LOCK_EX); r,w=os.pipe(); pid=os.fork()
if pid==0:
    g=open("lock","w")
    try: fcntl.flock(g,fcntl.LOCK_EX|fcntl.LOCK_NB); os.write(w,b"got")
    except OSError as e: os.write(w,errno.errorcode[e.errno].encode())
    fcntl.flock(g,fcntl.LOCK_EX); os.write(w,b"+later"); os._exit(0)
print(os.read(r,6)); time.sleep(0.01); fcntl.flock(lf,fcntl.LOCK_UN); print(os.read(r,10)); os.waitpid(pid,0)
fcntl.lockf(lf,fcntl.LOCK_EX,10,0); pid=os.fork()
if pid==0:
    try: fcntl.lockf(lf,fcntl.LOCK_EX|fcntl.LOCK_NB,5,5); os.write(w,b"bad")
    except OSError as e: os.write(w,errno.errorcode[e.errno].encode())
    os._exit(0)
os.waitpid(pid,0); print(os.read(r,10))
# O_TMPFILE + linkat
t=os.open(".",os.O_TMPFILE|os.O_RDWR,0o600); os.write(t,b"tmp"); print("linkat",libc.linkat(-100,b"/proc/self/fd/%d"%t,-100,b"linked",0x400)); print(open("linked").read(), os.fstat(t).st_nlink)
# splice, sendfile, copy
os.write(w,b"pipe data"); o=os.open("out",os.O_CREAT|os.O_RDWR); print(os.splice(r,o,100)); a,b=socket.socketpair(); print(os.sendfile(a.fileno(),o,5,4)); print(b.recv(10))
# scm rights across fork
a,b=socket.socketpair(); pid=os.fork()
if pid==0: socket.send_fds(b,[b"fd"],[os.open("linked",os.O_RDONLY)]); os._exit(0)
msg,fds,_,_=socket.recv_fds(a,10,3); print(msg,os.read(fds[0],10)); os.waitpid(pid,0)
# abstract + credentials
s=socket.socket(socket.AF_UNIX); s.bind("\0raddle-x"); s.listen(); c=socket.socket(socket.AF_UNIX); c.connect("\0raddle-x"); k,_=s.accept(); print(struct.unpack("3i",k.getsockopt(1,17,12))[0]==os.getpid())
# select timeouts, poll errors
t0=time.monotonic(); print(select.select([r],[],[],0.05), 0.04<time.monotonic()-t0<2)
# process substitution, here documents
print(subprocess.run(["bash","-c","diff <(echo a) <(echo b); cat <<< here; exec 5>x; echo five >&5; cat x"],capture_output=True,pass_fds=()).stdout)
# big pipe with threads
def wr(): 
    with os.fdopen(W,"wb") as h: h.write(b"z"*1000000)
R,W=os.pipe(); th=threading.Thread(target=wr); th.start(); n=0
while True:
    x=os.read(R,70000)
    if not x: break
    n+=len(x)
th.join(); print(n)
# udp v6
u=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM); u.bind(("::1",0)); v=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM); v.sendto(b"six",u.getsockname()); print(u.recvfrom(10)[0])
# unreachable
try: socket.create_connection(("127.0.0.1",1),timeout=1)
except OSError as e: print(type(e).__name__)
print(sorted(os.listdir(d)))
