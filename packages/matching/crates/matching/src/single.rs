//! Arithmetic on sixteen numbers in single precision, with the widest vector instructions.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m256, __m512, _CMP_LE_OQ, _mm256_cmp_ps, _mm256_fmadd_ps, _mm256_fnmadd_ps, _mm256_loadu_ps,
    _mm256_max_ps, _mm256_min_ps, _mm256_movemask_ps, _mm256_set1_ps, _mm256_storeu_ps,
    _mm256_sub_ps, _mm512_cmp_ps_mask, _mm512_fmadd_ps, _mm512_fnmadd_ps, _mm512_loadu_ps,
    _mm512_max_ps, _mm512_min_ps, _mm512_set1_ps, _mm512_storeu_ps, _mm512_sub_ps,
};

use crate::instructions::LANES;

/// Sixteen numbers of single precision in registers. Arithmetic is lane by lane.
///
/// # Safety
/// The processor must have the instructions of the implementation, for each method.
pub trait Single: Copy {
    /// The same value in all lanes.
    unsafe fn splat(value: f32) -> Self;
    /// Loads the first sixteen numbers of a slice with at least sixteen.
    unsafe fn load(values: &[f32]) -> Self;
    unsafe fn store(self, values: &mut [f32; LANES]);
    unsafe fn minus(self, other: Self) -> Self;
    /// The larger of the two numbers in each lane.
    unsafe fn maximum(self, other: Self) -> Self;
    /// The smaller of the two numbers in each lane.
    unsafe fn minimum(self, other: Self) -> Self;
    /// `self * self + sum`.
    unsafe fn squared_plus(self, sum: Self) -> Self;
    /// `self - left * right`.
    unsafe fn minus_product(self, left: Self, right: Self) -> Self;
    /// A bit for each lane, set if the number is at most the number of `other`.
    unsafe fn at_most(self, other: Self) -> u32;
}

/// Sixteen numbers in a register of AVX-512F.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct SingleAvx512(__m512);

#[cfg(target_arch = "x86_64")]
#[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
impl Single for SingleAvx512 {
    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: by the trait's condition.
        Self(unsafe { _mm512_set1_ps(value) })
    }

    #[inline(always)]
    unsafe fn load(values: &[f32]) -> Self {
        let values: &[f32; LANES] = values.first_chunk().expect("sixteen numbers");
        // SAFETY: by the trait's condition; there are sixteen numbers.
        Self(unsafe { _mm512_loadu_ps(values.as_ptr()) })
    }

    #[inline(always)]
    unsafe fn store(self, values: &mut [f32; LANES]) {
        // SAFETY: by the trait's condition; there is room for sixteen numbers.
        unsafe { _mm512_storeu_ps(values.as_mut_ptr(), self.0) };
    }

    #[inline(always)]
    unsafe fn minus(self, other: Self) -> Self {
        // SAFETY: by the trait's condition.
        Self(unsafe { _mm512_sub_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn maximum(self, other: Self) -> Self {
        // SAFETY: by the trait's condition.
        Self(unsafe { _mm512_max_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn minimum(self, other: Self) -> Self {
        // SAFETY: by the trait's condition.
        Self(unsafe { _mm512_min_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn squared_plus(self, sum: Self) -> Self {
        // SAFETY: by the trait's condition.
        Self(unsafe { _mm512_fmadd_ps(self.0, self.0, sum.0) })
    }

    #[inline(always)]
    unsafe fn minus_product(self, left: Self, right: Self) -> Self {
        // SAFETY: by the trait's condition.
        Self(unsafe { _mm512_fnmadd_ps(left.0, right.0, self.0) })
    }

    #[inline(always)]
    unsafe fn at_most(self, other: Self) -> u32 {
        // SAFETY: by the trait's condition.
        u32::from(unsafe { _mm512_cmp_ps_mask::<_CMP_LE_OQ>(self.0, other.0) })
    }
}

/// Sixteen numbers in two registers of AVX2.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct SingleAvx2([__m256; 2]);

#[cfg(target_arch = "x86_64")]
#[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
impl Single for SingleAvx2 {
    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: by the trait's condition.
        Self([unsafe { _mm256_set1_ps(value) }; 2])
    }

    #[inline(always)]
    unsafe fn load(values: &[f32]) -> Self {
        let values: &[f32; LANES] = values.first_chunk().expect("sixteen numbers");
        let start = values.as_ptr();
        // SAFETY: by the trait's condition; there are sixteen numbers.
        Self(unsafe { [_mm256_loadu_ps(start), _mm256_loadu_ps(start.add(8))] })
    }

    #[inline(always)]
    unsafe fn store(self, values: &mut [f32; LANES]) {
        let start = values.as_mut_ptr();
        // SAFETY: by the trait's condition; there is room for sixteen numbers.
        unsafe {
            _mm256_storeu_ps(start, self.0[0]);
            _mm256_storeu_ps(start.add(8), self.0[1]);
        }
    }

    #[inline(always)]
    unsafe fn minus(self, other: Self) -> Self {
        let ([low, high], [other_low, other_high]) = (self.0, other.0);
        // SAFETY: by the trait's condition.
        Self(unsafe {
            [
                _mm256_sub_ps(low, other_low),
                _mm256_sub_ps(high, other_high),
            ]
        })
    }

    #[inline(always)]
    unsafe fn maximum(self, other: Self) -> Self {
        let ([low, high], [other_low, other_high]) = (self.0, other.0);
        // SAFETY: by the trait's condition.
        Self(unsafe {
            [
                _mm256_max_ps(low, other_low),
                _mm256_max_ps(high, other_high),
            ]
        })
    }

    #[inline(always)]
    unsafe fn minimum(self, other: Self) -> Self {
        let ([low, high], [other_low, other_high]) = (self.0, other.0);
        // SAFETY: by the trait's condition.
        Self(unsafe {
            [
                _mm256_min_ps(low, other_low),
                _mm256_min_ps(high, other_high),
            ]
        })
    }

    #[inline(always)]
    unsafe fn squared_plus(self, sum: Self) -> Self {
        let ([low, high], [sum_low, sum_high]) = (self.0, sum.0);
        // SAFETY: by the trait's condition.
        let sums = unsafe {
            [
                _mm256_fmadd_ps(low, low, sum_low),
                _mm256_fmadd_ps(high, high, sum_high),
            ]
        };
        Self(sums)
    }

    #[inline(always)]
    unsafe fn minus_product(self, left: Self, right: Self) -> Self {
        // SAFETY: by the trait's condition.
        let differences = unsafe {
            [
                _mm256_fnmadd_ps(left.0[0], right.0[0], self.0[0]),
                _mm256_fnmadd_ps(left.0[1], right.0[1], self.0[1]),
            ]
        };
        Self(differences)
    }

    #[inline(always)]
    unsafe fn at_most(self, other: Self) -> u32 {
        let ([low, high], [other_low, other_high]) = (self.0, other.0);
        // SAFETY: by the trait's condition.
        let [low, high] = unsafe {
            [
                _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LE_OQ>(low, other_low)),
                _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LE_OQ>(high, other_high)),
            ]
        };
        low.cast_unsigned() | high.cast_unsigned() << 8
    }
}

/// Sixteen numbers for every processor.
#[derive(Clone, Copy)]
pub struct SinglePortable([f32; LANES]);

impl SinglePortable {
    #[inline(always)]
    #[allow(clippy::inline_always)] // It is the inner loop.
    fn with(self, other: Self, operation: impl Fn(f32, f32) -> f32) -> Self {
        let mut result = self.0;
        for (left, right) in result.iter_mut().zip(other.0) {
            *left = operation(*left, right);
        }
        Self(result)
    }
}

#[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
impl Single for SinglePortable {
    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        Self([value; LANES])
    }

    #[inline(always)]
    unsafe fn load(values: &[f32]) -> Self {
        Self(*values.first_chunk().expect("sixteen numbers"))
    }

    #[inline(always)]
    unsafe fn store(self, values: &mut [f32; LANES]) {
        *values = self.0;
    }

    #[inline(always)]
    unsafe fn minus(self, other: Self) -> Self {
        self.with(other, |left, right| left - right)
    }

    #[inline(always)]
    unsafe fn maximum(self, other: Self) -> Self {
        self.with(other, f32::max)
    }

    #[inline(always)]
    unsafe fn minimum(self, other: Self) -> Self {
        self.with(other, f32::min)
    }

    #[inline(always)]
    unsafe fn squared_plus(self, sum: Self) -> Self {
        self.with(sum, |value, sum| value * value + sum)
    }

    #[inline(always)]
    unsafe fn minus_product(self, left: Self, right: Self) -> Self {
        let product = left.with(right, |left, right| left * right);
        self.with(product, |value, product| value - product)
    }

    #[inline(always)]
    unsafe fn at_most(self, other: Self) -> u32 {
        let mut bits = 0;
        for (lane, (left, right)) in self.0.into_iter().zip(other.0).enumerate() {
            bits |= u32::from(left <= right) << lane;
        }
        bits
    }
}
