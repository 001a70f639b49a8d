class CountWordsJob < ActiveJob::Base
  def perform(note) = note.update!(words: note.body.to_s.split.size)
end
