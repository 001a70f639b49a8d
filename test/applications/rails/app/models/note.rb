class Note < ActiveRecord::Base
  has_many :tags, dependent: :destroy
  validates :title, presence: true, length: { maximum: 40 }
  scope :titled, ->(part) { where("title LIKE ?", "%#{sanitize_sql_like(part)}%") }
  after_create_commit { CountWordsJob.perform_later(self) }
end
