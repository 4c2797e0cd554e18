use clap::{Args, ValueEnum};
use protocol::ComputeDevice;

use crate::app;

/// `--device`.
#[derive(Args, Clone, Copy)]
pub struct DeviceArg {
    /// Compute on the GPU, if there is one, or the processor (default: from Settings)
    #[arg(long, env = "PONDER_DEVICE", value_name = "auto|cpu", hide_possible_values = true)]
    device: Option<Device>,
}

impl DeviceArg {
    /// Lets engines of this process compute on the device, if one is given. Called before there is one.
    pub fn apply(self) {
        match self.device {
            Some(Device::Auto) => app::compute_on(ComputeDevice::Auto),
            Some(Device::Cpu) => app::compute_on(ComputeDevice::Cpu),
            None => {}
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Device {
    /// The GPU, if there is one
    Auto,
    /// The processor
    Cpu,
}
