//! Arithmetic on sixteen numbers at once, with the widest vector instructions of the processor.
//!
//! All instruction sets compute the same: one subtraction and one fused multiplication and addition
//! for each pair and coordinate. Only a processor without fused instructions rounds once more.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m256d, __m512d, _CMP_LE_OQ, _mm256_cmp_pd, _mm256_fmadd_pd, _mm256_loadu_pd, _mm256_max_pd,
    _mm256_movemask_pd, _mm256_set1_pd, _mm256_storeu_pd, _mm256_sub_pd, _mm512_cmp_pd_mask,
    _mm512_fmadd_pd, _mm512_loadu_pd, _mm512_max_pd, _mm512_set1_pd, _mm512_storeu_pd,
    _mm512_sub_pd,
};

/// Number of values that are computed together.
pub const LANES: usize = 16;

/// A set of vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// AVX-512F: eight numbers in a register, 32 registers.
    Avx512,
    /// AVX2 and FMA: four numbers in a register, 16 registers.
    Avx2,
    /// Instructions that every processor has.
    Portable,
}

impl Instructions {
    /// All instruction sets, the widest first.
    pub const ALL: [Self; 3] = [Self::Avx512, Self::Avx2, Self::Portable];

    /// Returns the widest instruction set that this processor has.
    #[must_use]
    pub fn best() -> Self {
        Self::ALL
            .into_iter()
            .find(|instructions| instructions.is_available())
            .unwrap_or(Self::Portable)
    }

    /// Returns the name of the instructions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
        }
    }

    /// Whether this processor has these instructions.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => is_x86_feature_detected!("avx512f") && Self::Avx2.is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512 | Self::Avx2 => false,
            Self::Portable => true,
        }
    }
}

/// Sixteen numbers in registers. Arithmetic is lane by lane.
///
/// # Safety
/// The processor must have the instructions of the implementation, for each method.
pub trait Wide: Copy {
    /// The same value in all lanes.
    unsafe fn splat(value: f64) -> Self;
    /// Loads the first sixteen numbers of a slice with at least sixteen.
    unsafe fn load(values: &[f64]) -> Self;
    unsafe fn store(self, values: &mut [f64; LANES]);
    unsafe fn minus(self, other: Self) -> Self;
    /// The larger of the two numbers in each lane.
    unsafe fn maximum(self, other: Self) -> Self;
    /// `self * self + sum`.
    unsafe fn squared_plus(self, sum: Self) -> Self;
    /// A bit for each lane, set if the number is at most the number of `other`.
    unsafe fn at_most(self, other: Self) -> u32;
}

macro_rules! lane_by_lane {
    ($left:expr, $right:expr, $operation:expr) => {{
        let (mut result, right) = ($left, $right);
        for (left, right) in result.iter_mut().zip(right) {
            *left = $operation(*left, right);
        }
        result
    }};
}

/// Implements the arithmetic of [`Wide`] with three instructions for one register.
#[cfg(target_arch = "x86_64")]
macro_rules! arithmetic {
    ($subtract:ident, $maximum:ident, $multiply_add:ident) => {
        #[inline(always)]
        unsafe fn minus(self, other: Self) -> Self {
            // SAFETY: by the trait's condition.
            let minus = |left, right| unsafe { $subtract(left, right) };
            Self(lane_by_lane!(self.0, other.0, minus))
        }

        #[inline(always)]
        unsafe fn maximum(self, other: Self) -> Self {
            // SAFETY: by the trait's condition.
            let maximum = |left, right| unsafe { $maximum(left, right) };
            Self(lane_by_lane!(self.0, other.0, maximum))
        }

        #[inline(always)]
        unsafe fn squared_plus(self, sum: Self) -> Self {
            // SAFETY: by the trait's condition.
            let squared_plus = |left, right| unsafe { $multiply_add(left, left, right) };
            Self(lane_by_lane!(self.0, sum.0, squared_plus))
        }
    };
}

/// Sixteen numbers in two registers of AVX-512F.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct WideAvx512([__m512d; 2]);

#[cfg(target_arch = "x86_64")]
#[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
impl Wide for WideAvx512 {
    #[inline(always)]
    unsafe fn splat(value: f64) -> Self {
        // SAFETY: by the trait's condition.
        Self([unsafe { _mm512_set1_pd(value) }; 2])
    }

    #[inline(always)]
    unsafe fn load(values: &[f64]) -> Self {
        let values: &[f64; LANES] = values.first_chunk().expect("sixteen numbers");
        let start = values.as_ptr();
        // SAFETY: by the trait's condition; there are sixteen numbers.
        Self(unsafe { [_mm512_loadu_pd(start), _mm512_loadu_pd(start.add(8))] })
    }

    #[inline(always)]
    unsafe fn store(self, values: &mut [f64; LANES]) {
        let start = values.as_mut_ptr();
        // SAFETY: by the trait's condition; there is room for sixteen numbers.
        unsafe {
            _mm512_storeu_pd(start, self.0[0]);
            _mm512_storeu_pd(start.add(8), self.0[1]);
        }
    }

    arithmetic!(_mm512_sub_pd, _mm512_max_pd, _mm512_fmadd_pd);

    #[inline(always)]
    unsafe fn at_most(self, other: Self) -> u32 {
        // SAFETY: by the trait's condition.
        let [low, high] = unsafe {
            [
                _mm512_cmp_pd_mask::<_CMP_LE_OQ>(self.0[0], other.0[0]),
                _mm512_cmp_pd_mask::<_CMP_LE_OQ>(self.0[1], other.0[1]),
            ]
        };
        u32::from(low) | u32::from(high) << 8
    }
}

/// Sixteen numbers in four registers of AVX2.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct WideAvx2([__m256d; 4]);

#[cfg(target_arch = "x86_64")]
#[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
impl Wide for WideAvx2 {
    #[inline(always)]
    unsafe fn splat(value: f64) -> Self {
        // SAFETY: by the trait's condition.
        Self([unsafe { _mm256_set1_pd(value) }; 4])
    }

    #[inline(always)]
    unsafe fn load(values: &[f64]) -> Self {
        let values: &[f64; LANES] = values.first_chunk().expect("sixteen numbers");
        let start = values.as_ptr();
        // SAFETY: by the trait's condition; there are sixteen numbers.
        Self(unsafe {
            [
                _mm256_loadu_pd(start),
                _mm256_loadu_pd(start.add(4)),
                _mm256_loadu_pd(start.add(8)),
                _mm256_loadu_pd(start.add(12)),
            ]
        })
    }

    #[inline(always)]
    unsafe fn store(self, values: &mut [f64; LANES]) {
        let start = values.as_mut_ptr();
        for (index, register) in self.0.into_iter().enumerate() {
            // SAFETY: by the trait's condition; there is room for sixteen numbers.
            unsafe { _mm256_storeu_pd(start.add(4 * index), register) };
        }
    }

    arithmetic!(_mm256_sub_pd, _mm256_max_pd, _mm256_fmadd_pd);

    #[inline(always)]
    unsafe fn at_most(self, other: Self) -> u32 {
        let mut bits = 0;
        for (index, (left, right)) in self.0.into_iter().zip(other.0).enumerate() {
            // SAFETY: by the trait's condition.
            let mask = unsafe { _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_LE_OQ>(left, right)) };
            bits |= mask.cast_unsigned() << (4 * index);
        }
        bits
    }
}

/// Sixteen numbers for every processor.
#[derive(Clone, Copy)]
pub struct WidePortable([f64; LANES]);

#[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
impl Wide for WidePortable {
    #[inline(always)]
    unsafe fn splat(value: f64) -> Self {
        Self([value; LANES])
    }

    #[inline(always)]
    unsafe fn load(values: &[f64]) -> Self {
        Self(*values.first_chunk().expect("sixteen numbers"))
    }

    #[inline(always)]
    unsafe fn store(self, values: &mut [f64; LANES]) {
        *values = self.0;
    }

    #[inline(always)]
    unsafe fn minus(self, other: Self) -> Self {
        Self(lane_by_lane!(self.0, other.0, |left, right| left - right))
    }

    #[inline(always)]
    unsafe fn maximum(self, other: Self) -> Self {
        Self(lane_by_lane!(self.0, other.0, f64::max))
    }

    #[inline(always)]
    unsafe fn squared_plus(self, sum: Self) -> Self {
        Self(lane_by_lane!(self.0, sum.0, |left: f64, right| left * left + right))
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
