# What test scripts use of Ractor that Rubies before 4.0 lack. The helper has those require it.
class Ractor
  alias value take
  def self.main? = current == main
end
