// The place of an array in the card's memory, as two numbers of 32 bits.
__device__ __forceinline__ void ponder_address(const void* a, void* address) {
  const unsigned long long place = reinterpret_cast<unsigned long long>(a);
  reinterpret_cast<unsigned*>(address)[0] = static_cast<unsigned>(place);
  reinterpret_cast<unsigned*>(address)[1] = static_cast<unsigned>(place >> 32);
}
