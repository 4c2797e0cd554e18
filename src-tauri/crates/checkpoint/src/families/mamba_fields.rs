//! The fields that families with Mamba have in common. Defaults are those of transformers.

use crate::config::decoder::{Mamba2Config, ScanNorm};
use crate::config::limits::check_nonzero;
use crate::config::Fields;
use crate::error::Error;

/// The smallest and the largest step: any unless the config says otherwise.
pub(super) fn step_limit(text: Fields<'_>) -> Result<(f32, f32), Error> {
    Ok(text.range("time_step_limit")?.unwrap_or((0.0, f32::INFINITY)))
}

/// Mamba 2 by the fields of Granite 4 and Falcon-H1, `inner` wide if the config leaves the width of a head open.
pub(super) fn mamba2(text: Fields<'_>, inner: u32, norm: ScanNorm) -> Result<Mamba2Config, Error> {
    const WIDTH: &str = "mamba_d_head";
    let heads = text.number("mamba_n_heads")?.unwrap_or(128);
    check_nonzero("mamba_n_heads", heads)?;
    let stated = match text.text(WIDTH) {
        Ok(Some(word)) if word == "auto" => None,
        _ => text.number(WIDTH)?,
    };
    Ok(Mamba2Config {
        heads,
        head_width: stated.unwrap_or(inner / heads),
        groups: text.number("mamba_n_groups")?.unwrap_or(1),
        state_width: text.number("mamba_d_state")?.unwrap_or(256),
        kernel: text.number("mamba_d_conv")?.unwrap_or(4),
        conv_bias: text.flag("mamba_conv_bias")?.unwrap_or(true),
        bias: text.flag("mamba_proj_bias")?.unwrap_or(false),
        step_limit: step_limit(text)?,
        step_rank: None,
        norm,
    })
}

/// The width of all heads together, if the config has it as a multiple of the stream.
pub(super) fn expanded(text: Fields<'_>) -> Result<u32, Error> {
    let expand: u32 = text.number("mamba_expand")?.unwrap_or(2);
    Ok(text.required("hidden_size")?.saturating_mul(expand))
}

/// Refuses another activation of what the states take in.
pub(super) fn only_silu(text: Fields<'_>, field: &'static str) -> Result<(), Error> {
    match text.text(field)?.as_deref() {
        None | Some("silu" | "swish") => Ok(()),
        Some(other) => Err(Error::Unsupported(format!("the activation `{other}` of Mamba"))),
    }
}

/// The width from which steps are projected: a sixteenth of the stream unless the config says otherwise.
pub(super) fn rank(text: Fields<'_>, field: &'static str, hidden: u32) -> Result<u32, Error> {
    match text.text(field) {
        Ok(Some(word)) if word == "auto" => Ok(hidden.div_ceil(16)),
        _ => Ok(text.number(field)?.unwrap_or(hidden.div_ceil(16))),
    }
}
