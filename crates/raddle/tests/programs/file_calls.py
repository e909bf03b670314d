"""Random file operations in a directory; prints what each one gives. Arguments: seed, count, directory, keep."""
import os,sys,random,errno,stat,shutil,fcntl
seed=int(sys.argv[1]); n=int(sys.argv[2]); base=sys.argv[3]
r=random.Random(seed)
keep=len(sys.argv)>4
if not keep: shutil.rmtree(base,ignore_errors=True); os.mkdir(base)
os.chdir(base)
names=["a","b","c","d","a/x","b/x","a/y","d/z","a/x/q","c/.","d/..","a/","b/x/","./a","../%s/b"%os.path.basename(base),"","no/such","l1","l2","l1/x","l2/","n"*256, "a/x/q/w"]
fds=[]
def rp(): return r.choice(names)
def show(s): return (oct(s.st_mode), s.st_nlink if not stat.S_ISDIR(s.st_mode) else s.st_nlink, s.st_size if not stat.S_ISDIR(s.st_mode) else -1)
def op():
    k=r.randrange(30)
    if k==0: return "mkdir",os.mkdir(rp(),0o777)
    if k==1: return "rmdir",os.rmdir(rp())
    if k==2: return "unlink",os.unlink(rp())
    if k in(3,4): p,q=rp(),rp(); return ("rename",p[:9],q[:9]),os.rename(p,q)
    if k==5: p,q=rp(),rp(); return ("link",p[:9],q[:9]),os.link(p,q,follow_symlinks=bool(r.randrange(2)))
    if k==6: p,q=rp(),r.choice(["l1","l2","a","d/z","b/x"]); return ("symlink",p[:9],q),os.symlink(p,q)
    if k==7: p=rp(); return ("readlink",p[:9]),os.readlink(p)
    if k==8: p=rp(); return ("stat",p[:9]),show(os.stat(p))
    if k==9: p=rp(); return ("lstat",p[:9]),show(os.lstat(p))
    if k in(10,11,12):
        p=rp(); f=r.choice([os.O_RDONLY,os.O_WRONLY,os.O_RDWR])
        for x in [os.O_CREAT,os.O_EXCL,os.O_TRUNC,os.O_APPEND,os.O_NOFOLLOW,os.O_DIRECTORY,os.O_PATH,os.O_CREAT]:
            if r.randrange(5)==0: f|=x
        if f&os.O_CREAT and f&os.O_DIRECTORY: f&=~os.O_DIRECTORY
        if len(fds)>10: return "skip",None
        fd=os.open(p,f|os.O_NONBLOCK,0o666); fds.append(fd); return ("open",p[:9],f),fd
    if k==13 and fds: fd=fds.pop(r.randrange(len(fds))); return "close",os.close(fd)
    if k in(14,15) and fds: return "write",os.write(r.choice(fds),b"data%d"%r.randrange(99)*r.randrange(1,900))
    if k==16 and fds: return "read",(lambda b:(len(b),sum(b)))(os.read(r.choice(fds),r.randrange(9000)))
    if k==17 and fds: return "lseek",os.lseek(r.choice(fds),r.randrange(-10,9000),r.randrange(2))
    if k==18 and fds: return "ftruncate",os.ftruncate(r.choice(fds),r.randrange(12000))
    if k==19: p=rp(); return ("truncate",p[:9]),os.truncate(p,r.randrange(9000))
    if k==20: p=rp(); return ("listdir",p[:9]),sorted(os.listdir(p or "."))
    if k==21: p=rp(); return ("chmod",p[:9]),os.chmod(p,r.randrange(0o10000))
    if k==22: p=rp(); return ("access",p[:9]),os.access(p,r.randrange(8))
    if k==23 and fds: return "pwrite",os.pwrite(r.choice(fds),b"P"*r.randrange(1,100),r.randrange(20000))
    if k==24 and fds: return "pread",(lambda b:(len(b),sum(b)))(os.pread(r.choice(fds),r.randrange(9000),r.randrange(9000)))
    if k==25 and fds: return "fstat",show(os.fstat(r.choice(fds)))
    if k==26 and fds: return "fd path",os.readlink("/proc/self/fd/%d"%r.choice(fds)).replace(base,"BASE")
    if k==27 and fds: return "fallocate",os.posix_fallocate(r.choice(fds),r.randrange(5000),r.randrange(1,5000))
    if k==28: p=rp(); return ("mkfifo",p[:9]),os.mkfifo(p)
    if k==29 and fds: a,b=r.choice(fds),r.choice(fds); return "copy",os.copy_file_range(a,b,r.randrange(1,6000),r.randrange(6000),r.randrange(6000))
    return "none",None
for i in range(n):
    st=r.getstate()
    try: res=op()
    except OSError as e: 
        res=("E",errno.errorcode[e.errno])
        r2=random.Random(); r2.setstate(st); k=r2.randrange(30); args=[r2.choice(names)[:12] for _ in range(2)]
        res=res+(k,args)
    except ValueError as e: res=("V",str(e))
    print(i,res)
for root,ds,fs in sorted(os.walk(".")):
    print(root,sorted(ds),sorted(fs))
