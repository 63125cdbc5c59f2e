//! A shared library that is opened at run time, so that the environment chooses it.

use std::ffi::{CStr, CString, c_void};

use crate::problem::Problem;

/// An open library; it stays open until the process ends, because its functions do.
pub struct Library {
    name: String,
    handle: *mut c_void,
}

impl Library {
    /// Opens a library by its name, as the dynamic linker finds it, or by its path. `packages` are
    /// those of Debian that have it, for the message if it cannot be opened.
    pub fn open(name: &str, packages: &str) -> Result<Self, Problem> {
        let in_c = CString::new(name)
            .map_err(|_| Problem::usage(format!("--library {name:?} is no file name")))?;
        // SAFETY: the name is a string of C; the library's initialisers are trusted, like those of
        // every library that a user names.
        let handle = unsafe { libc::dlopen(in_c.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(Problem::failure(format!(
                "cannot open {name}: {}; install one of {packages}",
                last_error()
            )));
        }
        Ok(Self {
            name: name.to_owned(),
            handle,
        })
    }

    /// Returns the address of a function of the library, or of a library that it needs.
    pub fn function(&self, name: &CStr) -> Result<*mut c_void, Problem> {
        // SAFETY: the handle is open and the name is a string of C.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        if address.is_null() {
            return Err(Problem::failure(format!(
                "{} has no function {}",
                self.name,
                name.to_string_lossy()
            )));
        }
        Ok(address)
    }
}

/// The file from which the function at the address was loaded, without symbolic links.
pub fn file_of(address: *mut c_void) -> String {
    // SAFETY: zero is a valid value of every field.
    let mut symbol: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `symbol` is valid for writing.
    if unsafe { libc::dladdr(address, &raw mut symbol) } == 0 || symbol.dli_fname.is_null() {
        return "unknown".to_owned();
    }
    // SAFETY: the linker gives a string of C that lives as long as the library is open.
    let name = unsafe { CStr::from_ptr(symbol.dli_fname) }.to_string_lossy();
    std::fs::canonicalize(name.as_ref())
        .map_or(name.clone(), |path| {
            path.to_string_lossy().into_owned().into()
        })
        .into_owned()
}

fn last_error() -> String {
    // SAFETY: no other thread opens libraries, so the string stays as it is while it is copied.
    unsafe {
        let message = libc::dlerror();
        if message.is_null() {
            "for no known reason".to_owned()
        } else {
            CStr::from_ptr(message).to_string_lossy().into_owned()
        }
    }
}
