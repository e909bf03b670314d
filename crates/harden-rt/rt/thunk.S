/* Entered from the failing edge of hardened code, by a call inside inline assembly that claims to change only rax and
   the flags. The C code behind it is compiled without vector registers, so the general ones are all there is to keep. */
    .text

    .macro SAVING_THUNK name, target
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq %rcx
    pushq %rdx
    pushq %rsi
    pushq %rdi
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %r11
    movq %rax, %rdi
    leaq 16(%rbp), %rsi
    andq $-16, %rsp
    cld
    call \target
    leaq -64(%rbp), %rsp
    popq %r11
    popq %r10
    popq %r9
    popq %r8
    popq %rdi
    popq %rsi
    popq %rdx
    popq %rcx
    popq %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size \name, . - \name
    .endm

    SAVING_THUNK raddle_harden_retry_thunk, raddle_harden_retry@PLT
    SAVING_THUNK raddle_harden_pause_thunk, raddle_harden_pause@PLT
    SAVING_THUNK raddle_harden_inject_thunk, raddle_harden_inject@PLT

/* raddle_harden_unwind(rdi, rsi) for callers of LLVM's preserve_most convention: all general registers but r11 survive. */
    .globl raddle_harden_unwind_thunk
    .type raddle_harden_unwind_thunk, @function
    .p2align 4
raddle_harden_unwind_thunk:
    .cfi_startproc
    endbr64
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq %rax
    pushq %rcx
    pushq %rdx
    pushq %rsi
    pushq %rdi
    pushq %r8
    pushq %r9
    pushq %r10
    andq $-16, %rsp
    cld
    call raddle_harden_unwind@PLT
    leaq -64(%rbp), %rsp
    popq %r10
    popq %r9
    popq %r8
    popq %rdi
    popq %rsi
    popq %rdx
    popq %rcx
    popq %rax
    popq %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size raddle_harden_unwind_thunk, . - raddle_harden_unwind_thunk

/* raddle_harden_land(rdi = {rbx, rbp, r12, r13, r14, r15, rsp, pad}): continues at a landing pad of a frame above. */
    .globl raddle_harden_land
    .hidden raddle_harden_land
    .type raddle_harden_land, @function
raddle_harden_land:
    .cfi_startproc
    .cfi_undefined %rip
    movq 0(%rdi), %rbx
    movq 8(%rdi), %rbp
    movq 16(%rdi), %r12
    movq 24(%rdi), %r13
    movq 32(%rdi), %r14
    movq 40(%rdi), %r15
    movq 48(%rdi), %rsp
    movq 56(%rdi), %rcx
    xorl %eax, %eax
    xorl %edx, %edx
    jmp *%rcx
    .cfi_endproc
    .size raddle_harden_land, . - raddle_harden_land

    .section .note.GNU-stack, "", @progbits
