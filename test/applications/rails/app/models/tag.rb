class Tag < ActiveRecord::Base
  belongs_to :note
end
