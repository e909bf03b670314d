import sys,os,re,glob,textwrap
ROOT='/work/wt/corpus/corpus'
EXT={'c':'c','c++':'cpp','rust':'rs'}
def wrap(lang,lines):
    out=[]
    for para in lines:
        out+=textwrap.wrap(para,92)
    if lang in('c',):
        return '/* '+'\n * '.join(out)+' */\n'
    return ''.join('// '+l+'\n' for l in out)
def q(s): return '"'+s.replace('\\','\\\\').replace('"','\\"')+'"'
for f in sorted(glob.glob('/tmp/cw/t/*.txt')):
    for chunk in re.split(r'^@case ',open(f).read(),flags=re.M)[1:]:
        head,code=chunk.split('\n---\n',1)
        hl=head.split('\n'); name=hl[0].strip(); d={}
        for l in hl[1:]:
            if not l.strip(): continue
            k,v=l[1:].split(' ',1); d[k]=v.strip()
        lang=d['lang']; ext=EXT[lang]
        p=os.path.join(ROOT,name); os.makedirs(p,exist_ok=True)
        code=code.rstrip('\n')+'\n'
        for var,drop in(('buggy','F|'),('fixed','B|')):
            body=[]
            for l in code.split('\n'):
                if l.startswith(drop): continue
                if l[:2] in('B|','F|'): l=l[2:]
                body.append(l)
            title='%s, buggy.'%name if var=='buggy' else '%s, fixed.'%name
            hdr=wrap(lang,[title,'Wrong: '+d['wrong']]+(['Fix: '+d['fix']] if var=='fixed' else [])+['Origin: '+d['origin']])
            open(p+'/%s.%s'%(var,ext),'w').write(hdr+'\n'.join(body))
        flags=d.get('flags', '' if lang=='rust' else '-pthread').split()
        t='name = %s\nlanguage = %s\nkind = %s\norigin = %s\nswitches = %s\n'%(q(name),q(lang),q(d['kind']),q(d['origin']),d['switches'])
        if 'note' in d: t+='native_failures_note = %s\n'%q(d['note'])
        t+='flags = [%s]\nschedules = %s\n'%(', '.join(q(x) for x in flags),d.get('schedules','20000'))
        open(p+'/case.toml','w').write(t)
