//! Opens shared libraries at run time, so that the environment chooses them.

use std::ffi::{CStr, CString, c_void};

use crate::problem::Problem;

/// An open library. It is never closed, because its functions may still be called.
pub struct Library {
    name: String,
    handle: *mut c_void,
}

impl Library {
    /// Opens a library by its path, or by a name for the dynamic linker. `packages` are its Debian
    /// packages, for the error message.
    pub fn open(name: &str, packages: &str) -> Result<Self, Problem> {
        let c_name = CString::new(name)
            .map_err(|_| Problem::usage(format!("--library {name:?} is not a file name")))?;
        // SAFETY: the name is a C string, and the user trusts the library.
        let handle = unsafe { libc::dlopen(c_name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
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
        // SAFETY: the handle is open, and the name is a C string.
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

/// Returns the path of the library with the function at an address, without symbolic links.
pub fn file_of(address: *mut c_void) -> String {
    // SAFETY: zero is a valid value of every field.
    let mut symbol: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `symbol` is valid for writing.
    if unsafe { libc::dladdr(address, &raw mut symbol) } == 0 || symbol.dli_fname.is_null() {
        return "unknown".to_owned();
    }
    // SAFETY: the linker returns a C string that is valid while the library is open.
    let name = unsafe { CStr::from_ptr(symbol.dli_fname) }.to_string_lossy();
    std::fs::canonicalize(name.as_ref())
        .map_or(name.clone(), |path| {
            path.to_string_lossy().into_owned().into()
        })
        .into_owned()
}

fn last_error() -> String {
    // SAFETY: no other thread opens libraries, so the string does not change meanwhile.
    unsafe {
        let message = libc::dlerror();
        if message.is_null() {
            "the dynamic linker gave no reason".to_owned()
        } else {
            CStr::from_ptr(message).to_string_lossy().into_owned()
        }
    }
}
