// Numbers in little text: base64 of varints (lowest 7 bits first).
"use strict";
function packed_bytes(text) {
  const decode = () => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : decode();
}

// Returns a function that reads the next number.
function packed_reader(bytes) {
  let at = 0;
  return () => {
    let byte = bytes[at++];
    if (byte < 128) return byte;
    let value = byte & 127, scale = 128;
    do {
      byte = bytes[at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte >= 128);
    return value;
  };
}
