//! The numbers by which the schedule shares the device.

use std::time::Duration;

use mlx::device::Device;

/// The most requests of programs that wait; more are refused.
pub const MAX_WAITING: usize = 32;

/// The most sequences that decode together.
pub const MAX_BATCH: usize = 16;

/// How long to wait before memory that was refused is asked for again, unless an answer ends first.
pub const RETRY: Duration = Duration::from_millis(250);

/// The pause while another thread decodes an image, builds a grammar or prepares a request: other work may come up
/// meanwhile.
pub const POLL: Duration = Duration::from_millis(1);

/// Starvation guard of the queue. After this long a request is promoted one class, and the batch that blocks it admits
/// nothing new.
pub const QUEUE_PATIENCE: Duration = Duration::from_secs(30);

/// Starvation guard of prefill. A prompt that has read nothing for this long comes first, whatever its class.
pub const PREFILL_PATIENCE: Duration = Duration::from_secs(5);

/// The time for which a request that is still being prepared keeps those of its class that came later from being
/// admitted before it. Most take milliseconds; a slow template is no reason to wait.
pub const ORDER_PATIENCE: Duration = Duration::from_millis(100);

/// The longest time that a token of a running answer waits while others read: of a chat answer, and of others.
pub const GAPS: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(200)];

/// The longest time that a request waits for a chunk of a prefetch.
pub const PREFETCH_GAP: Duration = Duration::from_millis(70);

/// The share of its rate alone that a chat answer keeps while others decode.
pub const CHAT_SHARE: f64 = 0.8;

/// The number of answers of programs that run at the same time on a device.
pub fn slots(device: Device) -> usize {
    match device {
        Device::Cpu => 4,
        Device::Metal | Device::Cuda => 8,
    }
}
