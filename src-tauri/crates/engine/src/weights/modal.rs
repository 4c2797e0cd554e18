//! The experts of images beside those of text, which original files number together.

use super::Weights;
use crate::error::Result;

impl Weights<'_> {
    /// Gives the experts of images below `path` the names and forms of others below `path.vision_moe`. In the original
    /// files of ERNIE 4.5 VL they follow those of text, of which there are as many as the first of `counts`; the
    /// corrections of both stand in two rows, and gates have their `hidden` inputs first.
    pub fn part_modal_experts(&mut self, path: &str, hidden: i32, counts: [i32; 2]) -> Result<()> {
        let place = format!("{path}.experts.");
        self.rename_each(|name| {
            let (number, rest) = name.strip_prefix(&place)?.split_once('.')?;
            let number = number.parse::<i32>().ok()?.checked_sub(counts[0])?;
            (number >= 0).then(|| format!("{path}.vision_moe.experts.{number}.{rest}"))
        });
        let gates = [format!("{path}.gate"), format!("{path}.vision_moe.gate")];
        for (gate, count) in gates.iter().zip(counts) {
            let name = format!("{gate}.weight");
            if hidden != count && self.shape(&name) == Some(&[hidden, count]) {
                if let Some(stored) = self.tensors.remove(&name) {
                    let turned = stored.read()?.swapaxes(0, 1)?.contiguous()?;
                    self.tensors.insert(name, turned.into());
                }
            }
        }
        let [of_text, of_images] = gates.map(|gate| format!("{gate}.e_score_correction_bias"));
        if self
            .shape(&of_text)
            .is_some_and(|shape| shape.len() == 2 && shape[0] == 2)
        {
            if let Some(stored) = self.tensors.remove(&of_text) {
                let rows = stored.read()?;
                self.tensors.insert(of_text, rows.slice(0, 0, 1)?.into());
                self.tensors.insert(of_images, rows.slice(0, 1, 2)?.into());
            }
        }
        Ok(())
    }
}
