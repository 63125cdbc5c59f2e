//! Multiplies and inverts matrices by the system's BLAS and LAPACK, which are opened at run time.
//!
//! The calls use the Fortran interface of the reference implementation (netlib.org/blas,
//! netlib.org/lapack). Matrices are stored column by column, and integers have 32 bits. The lengths
//! of character arguments follow at the end.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

use crate::library::{Library, file_of};
use crate::problem::Problem;

/// The library name of the BLAS on Debian.
pub const BLAS: &str = "libblas.so.3";
/// The library name of the LAPACK on Debian.
const LAPACK: &str = "liblapack.so.3";

/// Debian packages that contain a BLAS, or a LAPACK.
const BLAS_PACKAGES: &str = "libblas3, libatlas3-base, libopenblas0-pthread, libblis4-pthread";
const LAPACK_PACKAGES: &str = "liblapack3, libatlas3-base, libopenblas0-pthread";

// Functions of the Fortran interface.
type Dgemm = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const c_int,
    *const c_int,
    *const c_int,
    *const f64,
    *const f64,
    *const c_int,
    *const f64,
    *const c_int,
    *const f64,
    *mut f64,
    *const c_int,
    usize,
    usize,
);
type Dgetrf = unsafe extern "C" fn(
    *const c_int,
    *const c_int,
    *mut f64,
    *const c_int,
    *mut c_int,
    *mut c_int,
);
type Dgetri = unsafe extern "C" fn(
    *const c_int,
    *mut f64,
    *const c_int,
    *const c_int,
    *mut f64,
    *const c_int,
    *mut c_int,
);

/// An open BLAS, with its matrix product.
pub struct Blas {
    address: *mut c_void,
    dgemm: Dgemm,
}

impl Blas {
    /// Opens the library by name or path.
    pub fn open(name: &str) -> Result<Self, Problem> {
        Self::from_library(&Library::open(name, BLAS_PACKAGES)?)
    }

    fn from_library(library: &Library) -> Result<Self, Problem> {
        let address = library.function(c"dgemm_")?;
        Ok(Self {
            address,
            // SAFETY: this is the signature of dgemm_ in every BLAS with 32-bit integers.
            dgemm: unsafe { std::mem::transmute::<*mut c_void, Dgemm>(address) },
        })
    }

    /// Returns the path of the file that contains the product.
    pub fn file(&self) -> String {
        file_of(self.address)
    }

    /// Sets `product` to `left` (rows × inner) times `right` (inner × columns), stored by columns.
    pub fn multiply(
        &self,
        (rows, inner, columns): (usize, usize, usize),
        left: &[f64],
        right: &[f64],
        product: &mut [f64],
    ) {
        assert_eq!(left.len(), rows * inner);
        assert_eq!(right.len(), inner * columns);
        assert_eq!(product.len(), rows * columns);
        let (m, k, n) = (to_fortran(rows), to_fortran(inner), to_fortran(columns));
        // SAFETY: the arrays have the lengths that the sizes and leading dimensions require.
        unsafe {
            (self.dgemm)(
                c"N".as_ptr(),
                c"N".as_ptr(),
                &raw const m,
                &raw const n,
                &raw const k,
                &raw const ONE,
                left.as_ptr(),
                &raw const m,
                right.as_ptr(),
                &raw const k,
                &raw const ZERO,
                product.as_mut_ptr(),
                &raw const m,
                1,
                1,
            );
        }
    }
}

/// Factors of dgemm: product = `ONE` · left · right + `ZERO` · product.
static ONE: f64 = 1.0;
static ZERO: f64 = 0.0;

/// An open LAPACK, with its functions for inverting a matrix.
pub struct Lapack {
    address: *mut c_void,
    dgetrf: Dgetrf,
    dgetri: Dgetri,
    /// The BLAS that this LAPACK uses.
    pub blas: Blas,
}

impl Lapack {
    /// Opens the LAPACK for an open BLAS. Tries, in this order, the folder of the BLAS, Debian's
    /// reference implementation, and the LAPACK that the dynamic linker finds. If a LAPACK needs
    /// `libblas.so.3`, it uses the open BLAS.
    pub fn open_for(blas: &Blas) -> Result<Self, Problem> {
        let file = blas.file();
        let folder = Path::new(&file).parent().unwrap_or(Path::new("/"));
        let paths = [folder.join(LAPACK), folder.join("../lapack").join(LAPACK)];
        match paths.iter().find(|path| path.exists()) {
            Some(path) => Self::open(&path.to_string_lossy()),
            None => Self::open(LAPACK),
        }
    }

    /// Opens the library by name or path.
    pub fn open(name: &str) -> Result<Self, Problem> {
        let library = Library::open(name, LAPACK_PACKAGES)?;
        let address = library.function(c"dgetrf_")?;
        let dgetri = library.function(c"dgetri_")?;
        Ok(Self {
            address,
            // SAFETY: these are the signatures in every LAPACK with 32-bit integers.
            dgetrf: unsafe { std::mem::transmute::<*mut c_void, Dgetrf>(address) },
            // SAFETY: as above.
            dgetri: unsafe { std::mem::transmute::<*mut c_void, Dgetri>(dgetri) },
            blas: Blas::from_library(&library)?,
        })
    }

    /// Returns the path of the file that contains the factorisation.
    pub fn file(&self) -> String {
        file_of(self.address)
    }

    /// Inverts a matrix (size × size) in place. A singular matrix is an error.
    pub fn invert(&self, matrix: &mut [f64], size: usize) -> Result<(), Problem> {
        assert_eq!(matrix.len(), size * size);
        let n = to_fortran(size);
        let mut pivots: Vec<c_int> = vec![0; size];
        let mut status = 0;
        // SAFETY: the matrix is n × n and there are n pivots.
        unsafe {
            (self.dgetrf)(
                &raw const n,
                &raw const n,
                matrix.as_mut_ptr(),
                &raw const n,
                pivots.as_mut_ptr(),
                &raw mut status,
            );
        }
        if status == 0 {
            let (_, work_length) = self.call_dgetri(matrix, &pivots, n, &mut [0.0], -1);
            // With length -1, dgetri only returns the necessary length of the work space.
            let mut work = vec![0.0; work_length];
            let length = to_fortran(work.len());
            (status, _) = self.call_dgetri(matrix, &pivots, n, &mut work, length);
        }
        if status != 0 {
            return Err(Problem::failure(format!(
                "the matrix cannot be inverted (LAPACK says {status})"
            )));
        }
        Ok(())
    }

    /// Calls dgetri; returns its status and the necessary length of the work space.
    fn call_dgetri(
        &self,
        matrix: &mut [f64],
        pivots: &[c_int],
        size: c_int,
        work: &mut [f64],
        length: c_int,
    ) -> (c_int, usize) {
        let mut status = 0;
        // SAFETY: the matrix is size × size with `size` pivots. The work space has `length`
        // elements, or one element if `length` is -1.
        unsafe {
            (self.dgetri)(
                &raw const size,
                matrix.as_mut_ptr(),
                &raw const size,
                pivots.as_ptr(),
                work.as_mut_ptr(),
                &raw const length,
                &raw mut status,
            );
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let work_length = work[0].max(f64::from(size)) as usize;
        (status, work_length)
    }
}

fn to_fortran(size: usize) -> c_int {
    c_int::try_from(size).expect("the options keep sizes below 2^15")
}

#[cfg(test)]
pub mod tests {
    use super::{Blas, Dgemm};
    use std::ffi::{c_char, c_int, c_void};

    /// Returns a BLAS for tests: a simple implementation of dgemm, without a library.
    pub fn test_blas() -> Blas {
        Blas {
            address: test_dgemm as *mut c_void,
            dgemm: test_dgemm as Dgemm,
        }
    }

    unsafe extern "C" fn test_dgemm(
        _: *const c_char,
        _: *const c_char,
        m: *const c_int,
        n: *const c_int,
        k: *const c_int,
        _: *const f64,
        left: *const f64,
        left_step: *const c_int,
        right: *const f64,
        right_step: *const c_int,
        _: *const f64,
        product: *mut f64,
        step: *const c_int,
        _: usize,
        _: usize,
    ) {
        let size = |number: *const c_int| {
            // SAFETY: the caller gives valid numbers.
            usize::try_from(unsafe { *number }).unwrap()
        };
        for row in 0..size(m) {
            for column in 0..size(n) {
                // SAFETY: the caller gives matrices of these sizes.
                unsafe {
                    *product.add(row + column * size(step)) = (0..size(k))
                        .map(|inner| {
                            *left.add(row + inner * size(left_step))
                                * *right.add(inner + column * size(right_step))
                        })
                        .sum();
                }
            }
        }
    }

    #[test]
    fn sizes_and_leading_dimensions_are_passed_as_fortran_expects() {
        // Product of (1 2 3; 4 5 6) and (7 8; 9 10; 11 12), stored column by column, by hand.
        let left = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
        let right = [7.0, 9.0, 11.0, 8.0, 10.0, 12.0];
        let mut product = [0.0; 4];
        test_blas().multiply((2, 3, 2), &left, &right, &mut product);
        assert_eq!(product[..], [58.0, 139.0, 64.0, 154.0]);
    }
}
