// Sums over the window, for all sections whose rows are not slices of their own. #data's `bins` has numbers over time:
//
//   width_ns, start_ns (from the first event), count   of the bins
//   numbers    how many there are, from 1 on; 0 is for what is always 0
//   packed     base64 of varints: for each number how many bins have values, then for each of these how far it is from
//              the last one, and the value
//   uncounted  values that are missing, because there are too many different ones
//
// Other parts of #data name what they count by such a number. Slices have four: [ns, longest, begun, ended]; a slice is
// in a window if it touches it, and each bin has its share of the ns. A window includes each bin that it touches.
"use strict";
function bins_of({ data, page_window, time }) {
  const { width_ns, start_ns, count, numbers } = data.bins;
  const packed = packed_bytes(data.bins.packed), next = packed_reader(packed);
  const firsts = new Uint32Array(numbers + 2); // the first cell of each number
  const cell_bins = new Uint16Array(packed.length / 2 + 1), values = new Float64Array(packed.length / 2 + 1);
  for (let number = 1, cell = 0; number <= numbers; number++) {
    for (let left = next(), bin = 0; left > 0; left--, cell++) {
      cell_bins[cell] = bin += next();
      values[cell] = next();
    }
    firsts[number + 1] = cell;
  }
  let range = null; // [first bin, last bin] of the window; null: the whole trace

  const start = (bin) => start_ns + bin * width_ns;
  const bin_at = (ns) => Math.max(0, Math.min(count - 1, Math.floor((ns - start_ns) / width_ns)));

  // Calls visit(bin, value) for what a number counts between two bins.
  function each(number, visit, [first, last] = range || [0, count - 1]) {
    for (let cell = firsts[number]; cell < firsts[number + 1] && cell_bins[cell] <= last; cell++) {
      if (cell_bins[cell] >= first) visit(cell_bins[cell], values[cell]);
    }
  }

  function sum(number, between) {
    let all = 0;
    each(number, (bin, value) => { all += value; }, between);
    return all;
  }

  function longest(number) {
    let most = 0;
    each(number, (bin, value) => { most = Math.max(most, value); });
    return most;
  }

  // Slices that touch the window. The longest one is not cut at its borders.
  function slices([ns, longest_number, begun, ended]) {
    const [first, last] = range || [0, count - 1];
    return { ns: sum(ns), longest: longest(longest_number), count: sum(begun, [0, last]) - sum(ended, [0, first - 1]) };
  }

  page_window.follow("bins", (window) => {
    range = window && count > 0 ? [bin_at(window[0]), bin_at(window[1] - 1)] : null;
  }, true);

  return {
    width_ns, count, start, each, sum, longest, slices,
    range: () => range,
    first: () => (range ? range[0] : 0),
    last: () => (range ? range[1] : count - 1),
    // What sections say of their window.
    text: () => (range ? `${time(start(range[0]))} to ${time(start(range[1] + 1))}` : "the whole trace"),
  };
}
