// SPDX-License-Identifier: Apache-2.0
//! The Rust part of every peer: none. The library is the peer's own archive, linked by the crate's build.rs.
#![no_std]

#[link(name = "c")]
extern "C" {}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
