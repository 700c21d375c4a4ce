//! A server that waits for requests in io_uring: what the lab's guest runs to look busy with I/O that is none.
//!
//! Some kernels count a task in `io_uring_enter` as waiting for I/O, whatever it waits for. fio cannot show it: it never
//! waits for something that does not come.

use std::os::fd::AsRawFd;

use anyhow::{Context, Result};
use io_uring::{IoUring, opcode, types};

/// `POLLIN` of poll(2).
const READABLE: u32 = 1;

fn main() -> Result<()> {
    let mut ring = IoUring::new(8).context("io_uring_setup")?;
    let (requests, _nobody_writes) = std::io::pipe().context("pipe")?;
    let poll = opcode::PollAdd::new(types::Fd(requests.as_raw_fd()), READABLE).build();
    // SAFETY: the entry points to no memory, and the descriptor in it stays open for as long as the ring.
    #[expect(
        unsafe_code,
        reason = "an entry may hold pointers, so that the crate's push is unsafe; this one holds none"
    )]
    unsafe { ring.submission().push(&poll) }.context("a full queue")?;
    loop {
        ring.submit_and_wait(1).context("io_uring_enter")?;
    }
}
