    .text
    .globl _start, irreducible, overlap, truncated, masked, fixed_table, flags_through
    .type _start, @function
_start:
    xorl %edi, %edi
    movl $60, %eax
    syscall
    hlt
    .size _start, . - _start

# Two entries into one cycle.
    .type irreducible, @function
irreducible:
    testl %edi, %edi
    je 2f
1:  decl %edi
2:  decl %edi
    jne 1b
    ret
    .size irreducible, . - irreducible

# A jump into the middle of an instruction: the immediate of the MOV is INC ECX, NOP, NOP.
    .type overlap, @function
overlap:
    testl %edi, %edi
    je 1f + 1
1:  .byte 0xb8, 0xff, 0xc1, 0x90, 0x90
    ret
    .size overlap, . - overlap

# The last instruction is cut off by the end of the function.
    .type truncated, @function
truncated:
    nop
    .byte 0xe8, 0x00
    .size truncated, . - truncated

    .type masked, @function
masked:
    andl $3, %edi
    leaq .Loffsets(%rip), %rdx
    movslq (%rdx,%rdi,4), %rax
    addq %rdx, %rax
    jmp *%rax
.La: ret
.Lb: nop
    ret
.Lc: nop
    nop
    ret
    .size masked, . - masked

    .type fixed_table, @function
fixed_table:
    cmpl $2, %edi
    ja .Lf
    movl %edi, %eax
    jmp *.Laddresses(,%rax,8)
.Ld: ret
.Le: nop
    ret
.Lf: nop
    nop
    ret
    .size fixed_table, . - fixed_table

# The condition at the end comes from the load and from rsi, not from rdx or the address.
    .type flags_through, @function
flags_through:
    movl (%rdi), %eax
    movl %edx, %ecx
    addl %esi, %eax
    cmpl $5, %eax
    jne 1f
    xorl %ecx, %ecx
1:  ret
    .size flags_through, . - flags_through

    .section .rodata
    .balign 8
.Loffsets:
    .long .La - .Loffsets, .Lb - .Loffsets, .Lc - .Loffsets, .Lb - .Loffsets
.Laddresses:
    .quad .Ld, .Le, .Ld
