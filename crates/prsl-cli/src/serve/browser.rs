//! Opens a page in the user's browser.

use std::process::{Command, Stdio};
use std::thread;

/// Programs that open an address, with their first arguments. The first one that can be started is used.
const OPENERS: &[(&str, &[&str])] = if cfg!(target_os = "macos") {
    &[("open", &[])]
} else if cfg!(windows) {
    &[("rundll32", &["url.dll,FileProtocolHandler"])]
} else {
    &[("xdg-open", &[]), ("wslview", &[]), ("gio", &["open"])]
};

/// Opens the address, and returns whether a program for it was found.
pub fn open(address: &str) -> bool {
    OPENERS.iter().any(|(program, arguments)| {
        let mut command = Command::new(program);
        command.args(*arguments).arg(address);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else { return false };
        // The program may run as long as the browser does; only its end is collected.
        thread::spawn(move || child.wait());
        true
    })
}
