//! The instruction set that is used, chosen once in a process, and functions compiled for each.

use std::sync::OnceLock;

/// An instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// Code for every processor.
    Plain,
    /// AVX2 with FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 with BW, DQ, VL and VNNI.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// The same with AMX's tiles of bytes.
    #[cfg(target_arch = "x86_64")]
    Amx,
    /// NEON.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Isa {
    /// The best one of this processor; `PONDER_CPU` names a lesser one.
    pub fn chosen() -> Self {
        static CHOSEN: OnceLock<Isa> = OnceLock::new();
        *CHOSEN.get_or_init(|| {
            let available = Self::available();
            let wanted = std::env::var("PONDER_CPU").ok();
            let named = available.iter().find(|isa| Some(isa.name()) == wanted.as_deref());
            *named.unwrap_or_else(|| available.last().unwrap_or(&Isa::Plain))
        })
    }

    /// Those of this processor, from the slowest on.
    pub fn available() -> Vec<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 =
                is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vnni");
            let amx = avx512 && crate::lanes::amx::is_available();
            let all = [
                (Isa::Plain, true),
                (Isa::Avx2, avx2),
                (Isa::Avx512, avx512),
                (Isa::Amx, amx),
            ];
            all.into_iter()
                .filter(|(_, there)| *there)
                .map(|(isa, _)| isa)
                .collect()
        }
        #[cfg(target_arch = "aarch64")]
        {
            vec![Isa::Plain, Isa::Neon]
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        {
            vec![Isa::Plain]
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Isa::Amx => "amx",
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => "neon",
        }
    }

    /// Its name as its maker writes it.
    pub fn title(self) -> &'static str {
        match self {
            Isa::Plain => "generic",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            Isa::Amx => "AMX",
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => "NEON",
        }
    }
}

/// Calls a function that is generic over [`crate::lanes::Lanes`] with those of an instruction set.
macro_rules! for_isa {
    ($isa:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        use $crate::isa::Isa;
        use $crate::lanes;
        match $isa {
            Isa::Plain => $function::<lanes::Plain>($($argument),*),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => $function::<lanes::Avx2>($($argument),*),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Amx => $function::<lanes::Avx512>($($argument),*),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => $function::<lanes::Neon>($($argument),*),
        }
    }};
}
pub(crate) use for_isa;

#[cfg(test)]
mod tests {
    use super::*;

    /// `./dev check-processors` names in `PONDER_EXPECTED_CPU` the one that a processor it imitates has.
    #[test]
    fn the_best_one_of_the_processor_is_chosen() {
        let (available, chosen) = (Isa::available(), Isa::chosen());
        println!("instruction set: {} of {available:?}", chosen.name());
        assert_eq!(available.first(), Some(&Isa::Plain));
        assert!(available.is_sorted());
        assert!(available.contains(&chosen));
        if let Ok(expected) = std::env::var("PONDER_EXPECTED_CPU") {
            assert_eq!(chosen.name(), expected);
        }
    }
}
