//! What the allocator of the process does with memory that batches of `bytes` gave back.
#![cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    expect(unsafe_code, reason = "the allocator is asked through C")
)]

#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::{env, ffi::c_int, sync::Once};

/// Memory freed at the end of the heap that the allocator keeps instead of giving it back, bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_BYTES: c_int = 64 << 20;

/// Asks glibc to keep some memory that was freed: `bytes` objects of a batch are freed together, and giving their pages back to
/// the system only to have them cleared for the next batch costs several times the copy itself. Does nothing where the
/// user has tuned the allocator, or where it is another one.
pub(crate) fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        static ONCE: Once = Once::new();
        let tuned = [
            "MALLOC_TRIM_THRESHOLD_",
            "MALLOC_MMAP_THRESHOLD_",
            "GLIBC_TUNABLES",
        ];
        if tuned.iter().any(|name| env::var_os(name).is_some()) {
            return;
        }
        // The size from which an allocation is a mapping of its own has to be set too: setting one of the two ends the
        // allocator's own adjustment of both, and payloads above 128 KiB would be mapped and cleared one by one.
        ONCE.call_once(|| {
            // SAFETY: both calls only set a number that the allocator reads under its own lock.
            unsafe {
                libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES);
                libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 20);
            }
        });
    }
}
