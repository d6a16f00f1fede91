//! Many metrics at once: the false discovery rate.

/// The q values of these p values: the smallest false discovery rate at which each would be called.
///
/// Benjamini and Hochberg 1995, J. R. Stat. Soc. B 57:289, the step-up procedure in its adjusted
/// form: the i-th smallest of m becomes the least of `p_j m / j` over all j from i on.
#[must_use]
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut q = vec![1.0; p.len()];
    let mut least = 1.0_f64;
    for (rank, index) in order.into_iter().enumerate().rev() {
        least = least.min(p[index] * p.len() as f64 / (rank + 1) as f64);
        q[index] = least;
    }
    q
}
