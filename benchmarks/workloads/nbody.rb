# What do floats and instance variables of one shape cost? No exits.
require_relative "../inside"

class Body
  attr_reader :x, :y, :vx, :vy, :mass

  def initialize(x, y, vx, vy, mass)
    @x, @y, @vx, @vy, @mass = x, y, vx, vy, mass
  end

  def attract(other, dt)
    dx = @x - other.x
    dy = @y - other.y
    distance2 = dx * dx + dy * dy + 0.01
    pull = dt * other.mass / (distance2 * Math.sqrt(distance2))
    @vx -= dx * pull
    @vy -= dy * pull
  end

  def move(dt)
    @x += @vx * dt
    @y += @vy * dt
  end
end

BODIES = Array.new(5) { |i| Body.new(i * 1.5, i * 0.7, 0.1 * i, 0.2 - 0.1 * i, 1.0 + i) }

def step(dt)
  BODIES.each do |body|
    BODIES.each { |other| body.attract(other, dt) unless body.equal?(other) }
  end
  BODIES.each { |body| body.move(dt) }
end

VMTraceBench.iterate { 2_000.times { step(0.001) } }
