//! The guests, in assembler.
#![expect(unsafe_code, reason = "names the bytes that the assembler made")]

/// Bytes between two labels of the assembled text below.
macro_rules! guest {
    ($name:ident, $start:ident, $end:ident, $text:literal) => {
        std::arch::global_asm!(
            ".pushsection .rodata",
            concat!(stringify!($start), ":"),
            $text,
            ".code64",
            concat!(stringify!($end), ":"),
            ".popsection",
        );

        pub(super) fn $name() -> &'static [u8] {
            unsafe extern "C" {
                static $start: u8;
                static $end: u8;
            }
            let (start, end) = (&raw const $start, &raw const $end);
            // SAFETY: both labels are in the same section, in this order, and the bytes between them never change.
            unsafe { std::slice::from_raw_parts(start, end.addr() - start.addr()) }
        }
    };
}

// Goes to user mode at 0x20_0000 with SYSRET; SYSCALL comes back and halts.
guest!(
    enter_user,
    guest_enter_user,
    guest_enter_user_end,
    "
    mov ecx, 0xC0000081
    xor eax, eax
    mov edx, 0x00180008
    wrmsr
    mov ecx, 0xC0000082
    lea rax, [rip + 2f]
    xor edx, edx
    wrmsr
    mov ecx, 0xC0000084
    mov eax, 0x200
    wrmsr
    mov ecx, 0x200000
    mov r11d, 0x202
    mov rbx, rsp
    mov rsp, 0x201800
    sysretq
2:  mov rsp, rbx
    hlt
"
);

// Stores, then loads from a page that is not mapped, then asks for the kernel.
guest!(
    user_touches_missing_page,
    guest_user_missing,
    guest_user_missing_end,
    "
    mov qword ptr [0x201000], 41
    mov rdi, [0x202010]
    add rdi, 1
    syscall
"
);

// Page-fault handler: remembers error code and CR2, maps the page, goes back.
guest!(
    map_missing_page,
    guest_map_missing,
    guest_map_missing_end,
    "
    push rax
    mov rax, [rsp + 8]
    mov [0x30000], rax
    mov rax, cr2
    mov [0x30008], rax
    mov rax, 0x102007
    mov [0x8010], rax
    pop rax
    add rsp, 8
    iretq
"
);

// Counts in RAX for ever with interrupts on.
guest!(
    count_with_interrupts,
    guest_count,
    guest_count_end,
    "
    sti
2:  inc rax
    jmp 2b
"
);

// Interrupt handler: counts in memory.
guest!(
    count_interrupt,
    guest_count_irq,
    guest_count_irq_end,
    "
    inc qword ptr [0x30000]
    iretq
"
);

// Keeps interrupts off, opens a window late, then halts.
guest!(
    open_window,
    guest_window,
    guest_window_end,
    "
    cli
    mov eax, 1
    mov eax, 2
    sti
    mov eax, 3
    mov eax, 4
    hlt
"
);

// Ports, memory-mapped registers, model-specific registers, CPUID.
guest!(
    touch_devices,
    guest_devices,
    guest_devices_end,
    "
    mov dx, 0x3F8
    in al, dx
    mov ebx, eax
    mov eax, 0x77
    out 0x80, al
    mov r8d, [0x100030]
    add dword ptr [0x100080], 1
    mov ecx, 0x123
    rdmsr
    mov r9d, eax
    mov eax, 0x4F524144
    mov ecx, 5
    cpuid
    nop
"
);

// Calls the function at 0x1_4000 for ever and adds what it gives.
guest!(
    call_function,
    guest_call,
    guest_call_end,
    "
    mov ebx, 0x14000
2:  call rbx
    add r8, rax
    inc r9
    jmp 2b
"
);

guest!(
    give_one,
    guest_one,
    guest_one_end,
    "
    mov eax, 1
    ret
"
);

guest!(
    give_hundred,
    guest_hundred,
    guest_hundred_end,
    "
    mov eax, 100
    ret
"
);

// Another processor changes the immediate of `give_one` to 5.
guest!(
    patch_function,
    guest_patch,
    guest_patch_end,
    "
    mov byte ptr [0x14001], 5
    hlt
"
);

// Another processor maps page 0x1_5000 where `give_one` was, without telling anybody.
guest!(
    remap_function,
    guest_remap,
    guest_remap_end,
    "
    mov rax, 0x15003
    mov [0x70A0], rax
    hlt
"
);

// Reads through a translation that it changes; INVLPG makes the change visible.
guest!(
    change_translation,
    guest_change,
    guest_change_end,
    "
    mov rax, [0x30000]
    mov rcx, 0x31003
    mov [0x7180], rcx
    mov rbx, [0x30000]
    invlpg [0x30000]
    mov rdx, [0x30000]
    mov rcx, 0x32003
    mov [0x7180], rcx
    mov rcx, cr3
    mov cr3, rcx
    mov rsi, [0x30000]
    hlt
"
);

// Writes to a page that is read-only even for the kernel.
guest!(
    write_read_only,
    guest_read_only,
    guest_read_only_end,
    "
    mov qword ptr [0x203000], 1
    hlt
"
);

// Remembers the error code of a page fault and halts.
guest!(
    halt_on_fault,
    guest_halt_fault,
    guest_halt_fault_end,
    "
    pop rdi
    hlt
"
);

// Arithmetic, memory, calls, string instructions and a page crossing, to be cut anywhere.
guest!(
    mixed_work,
    guest_mixed,
    guest_mixed_end,
    "
    mov ecx, 40
    xor eax, eax
    mov edi, 0x30FF0
    mov ebx, 0x31FFD
2:  add rax, rcx
    imul rax, rax, 31
    mov [rbx], rax
    xor rax, [rbx]
    mov [rbx + 8], rax
    push rax
    pop rdx
    adc rdx, [rbx]
    pushfq
    pop r8
    xor r9, r8
    call 3f
    loop 2b
    mov edi, 0x30FF0
    mov esi, 0x31FF0
    mov ecx, 20
    rep movsb
    mov ecx, 5
    rep stosq
    hlt
3:  cmp rdx, rax
    setb r10b
    cmovb r11, rdx
    ret
"
);

// A processor after its start-up message: real mode, protected mode, long mode.
guest!(
    start_up,
    guest_start_up,
    guest_start_up_end,
    "
    .code16
    cli
    xor ax, ax
    mov ds, ax
    lgdt [0x9000]
    mov eax, 1
    mov cr0, eax
    .byte 0x66, 0xEA, 0x40, 0x80, 0x01, 0x00, 0x18, 0x00
    .fill 0x40 - (. - guest_start_up), 1, 0x90
    .code32
    mov ax, 0x10
    mov ds, ax
    mov ss, ax
    mov eax, 0x20
    mov cr4, eax
    mov eax, 0x4000
    mov cr3, eax
    mov ecx, 0xC0000080
    rdmsr
    or eax, 0x100
    wrmsr
    mov eax, 0x80000001
    mov cr0, eax
    .byte 0xEA, 0x80, 0x80, 0x01, 0x00, 0x08, 0x00
    .fill 0x80 - (. - guest_start_up), 1, 0x90
    .code64
    mov rax, 0x1122334455667788
    mov [0x30000], rax
    hlt
"
);
